"""Uploads on the admin listener: files of a client that fill a new table.

``POST /uploads`` creates a table, which is CREATING until all items are in it. ``PUT
/uploads/ID/NUMBER`` stores a piece: DynamoDB JSON, compressed with gzip. ``POST /uploads/ID/end``
ends the upload. ``GET /uploads/ID`` shows its state, ``GET /uploads/ID/errors`` the error log, and
``GET /uploads`` all uploads whose tables are not complete.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import ClientError, web

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.mailbox import MailboxClosed
from dynactor.actors.transfers.table_imports import TableImports, uploaded_import
from dynactor.actors.transfers.uploads import PieceBusy, UploadConflict
from dynactor.api.admin.answers import fault, json_answer, other_method, other_type, refused
from dynactor.api.admin_api.upload_messages import (
    END,
    ERRORS,
    PIECE_TYPE,
    UPLOADS_PATH,
    EndRequest,
    UploadAnswer,
    UploadRequest,
    UploadsAnswer,
)
from dynactor.api.http.settings import SERVER_NAME
from dynactor.api.operations.create_table import new_table, refuse_unsupported
from dynactor.api.requests.inputs import CreateTableInput
from dynactor.model.errors import (
    DynamoDBError,
    ValidationException,
)
from dynactor.model.tables.table_rules import define
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage.buckets.bucket import BucketError

_MOST_PIECES: Final = 1_000_000
_CHUNK_BYTES: Final = 256 * 1024


async def answer(database: Database, request: web.BaseRequest) -> web.Response:
    """Answer a request for one of the paths below ``/uploads``."""
    upload_id, _, last = request.path.removeprefix(UPLOADS_PATH).strip("/").partition("/")
    methods = _methods(upload_id, last)
    if request.method not in methods.split(", "):
        return other_method(request.path, methods)
    try:
        if not upload_id:
            return await _begun(database, request) if request.method == "POST" else _all(database)
        found = database.part(TableImports).find(upload_id)
        if found is None or not found.is_upload:
            return fault(HTTPStatus.NOT_FOUND, f"There is no upload {upload_id}")
        if last == ERRORS:
            return _text(await database.part(TableImports).error_log(upload_id))
        if last == END:
            wanted = msgspec.json.decode(await request.read(), type=EndRequest)
            await database.part(TableImports).uploads.end(upload_id, wanted.pieces)
        elif last:
            if (refusal := _other_piece(request, last)) is not None:
                return refusal
            await database.part(TableImports).uploads.receive(upload_id, int(last), _parts(request))
        return json_answer(HTTPStatus.OK, _shown(database, found))
    except (msgspec.MsgspecError, ClientError, ConnectionError) as error:
        return fault(HTTPStatus.BAD_REQUEST, str(error))
    except PieceBusy as error:
        return fault(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except UploadConflict as error:
        return fault(HTTPStatus.CONFLICT, str(error))
    except BucketError as error:
        return fault(HTTPStatus.INSUFFICIENT_STORAGE, error.message)
    except DynamoDBError as error:
        return refused(error)
    except MailboxClosed:
        return fault(HTTPStatus.SERVICE_UNAVAILABLE, "The server is stopping")


def _methods(upload_id: str, last: str) -> str:
    if not upload_id:
        return "GET, HEAD, POST"
    if last == END:
        return "POST"
    return "PUT" if last and last != ERRORS else "GET, HEAD"


def _other_piece(request: web.BaseRequest, last: str) -> web.Response | None:
    if not (last.isascii() and last.isdigit() and int(last) < _MOST_PIECES):
        return fault(HTTPStatus.BAD_REQUEST, f"{last[:20]} is not the number of a piece")
    if request.content_type != PIECE_TYPE:
        message = f"A piece is DynamoDB JSON in gzip, with Content-Type: {PIECE_TYPE}"
        return fault(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, message)
    return None


async def _parts(request: web.BaseRequest) -> AsyncIterator[bytes]:
    """The body; raises if the connection breaks before its end."""
    async for part in request.content.iter_chunked(_CHUNK_BYTES):
        yield part


async def _begun(database: Database, request: web.BaseRequest) -> web.Response:
    refusal = other_type(request)
    if refusal is not None:
        return refusal
    members = msgspec.json.decode(await request.read(), type=UploadRequest).table
    wanted = msgspec.convert(members, CreateTableInput)
    refuse_unsupported(wanted)
    new = new_table(wanted.TableName, wanted, database.clock.now_epoch_seconds())
    if new.local_indexes or new.stream is not None:
        raise ValidationException(
            "A table with local secondary indexes or a stream can't be uploaded"
        )
    definition = define(new, database.settings.region)
    begun = await database.ask(uploaded_import(definition, members))
    return json_answer(HTTPStatus.CREATED, _shown(database, begun))


def _all(database: Database) -> web.Response:
    running = [
        _shown(database, each)
        for each in database.part(TableImports).imports
        if each.is_upload and each.status == "IN_PROGRESS"
    ]
    return json_answer(HTTPStatus.OK, UploadsAnswer(running))


def _shown(database: Database, found: TableImport) -> UploadAnswer:
    upload = database.part(TableImports).uploads.find(found.import_id)
    counts = found.counts
    return UploadAnswer(
        found.import_id,
        found.table_name,
        found.status,
        0 if upload is None else upload.first_gap,
        upload is None or upload.count is not None,
        counts.processed_items,
        counts.imported_items,
        counts.errors,
        counts.duplicates,
        found.failure_message,
    )


def _text(data: bytes) -> web.Response:
    return web.Response(
        body=data, headers={"Content-Type": "application/jsonl", "Server": SERVER_NAME}
    )
