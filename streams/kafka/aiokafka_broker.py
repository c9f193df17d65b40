"""A Kafka cluster behind the broker's port; only this file imports aiokafka.

aiokafka retries while the broker does not answer, and numbers its batches, so the broker accepts
each one once. When aiokafka gives up, its sequence has a gap: the broker would refuse later records
or, worse, accept them. So the publisher is discarded as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain, islice
from typing import Any, Final

import anyio
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    IllegalOperation,
    IllegalSaslStateError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    ProducerFenced,
    RecordListTooLargeError,
    SaslAuthenticationFailed,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedSaslMechanismError,
    for_code,
)

from dynactor.model.limits import MIB
from dynactor.streams.kafka.broker import (
    BatchTooLarge,
    BrokerError,
    BrokerRefused,
    BrokerSettings,
    DeliveryFailed,
    FoundTopic,
    PublisherFenced,
    Topic,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage

_MAX_REQUEST_BYTES: Final = 8 * MIB
# A record that exceeds this fraction of a batch's size is sent alone.
_LARGE_SHARE: Final = 8
_CLOSE_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.1
_READ_SECONDS: Final = 1.0
# The longest time that a reader waits for an unfinished transaction.
_POSITIONS_SECONDS: Final = 90.0
_MILLISECONDS: Final = 1_000

_REFUSALS: Final = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    PolicyViolationError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedSaslMechanismError,
    ssl.SSLError,
)
# Errors of creating a topic after which the topic may exist: an operator may have created it, and
# the publisher may lack the permission.
_PERHAPS_THERE: Final = (
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    ClusterAuthorizationFailedError,
)

_log = structlog.get_logger("kafka")


class Kafka:
    """A Kafka cluster, with the interface of ``Broker``."""

    def __init__(self, settings: BrokerSettings) -> None:
        """Store the settings, without a connection; raises ``Refused`` for an unreadable file."""
        # Hide aiokafka's log: while the broker is unreachable, it logs every retry.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        self._settings = settings
        self._client_options = _client_options(settings)

    async def check(self) -> None:
        """See ``Broker``."""
        async with self._errors(), self._admin():
            pass

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        """See ``Broker``."""
        async with self._errors(), self._admin() as admin:
            answer = await admin.create_topics(
                [
                    NewTopic(
                        topic.name,
                        topic.partition_count,
                        topic.replication_factor,
                        topic_configs=dict(topic.settings),
                    )
                ]
            )
            ((_, code, *message),) = answer.topic_errors
            is_new = not code
            refusal = for_code(code)
            if code and refusal not in _PERHAPS_THERE:
                raise refusal(*message)
            while True:
                (found,) = await admin.describe_topics([topic.name])
                if not found["error_code"] and found["partitions"]:
                    return FoundTopic(len(found["partitions"]), is_new)
                if code and refusal is not TopicAlreadyExistsError:
                    raise refusal(*message)
                await asyncio.sleep(_RETRY_SECONDS)

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        """See ``Broker``."""
        partitions = [TopicPartition(topic, number) for number in range(partition_count)]
        async with self._errors(), self._consumer(partitions[0], "read_uncommitted") as consumer:
            return not any((await consumer.end_offsets(partitions)).values())

    async def open_publisher(self, transactional_id: str | None = None) -> KafkaPublisher:
        """See ``Broker``."""
        producer = AIOKafkaProducer(
            **self._client_options,
            enable_idempotence=True,
            transactional_id=transactional_id,
            max_batch_size=_MAX_REQUEST_BYTES,
            max_request_size=_MAX_REQUEST_BYTES,
        )
        publisher = KafkaPublisher(producer)
        try:
            async with self._errors():
                await _started(producer.start())
        except BaseException:
            await publisher.close()
            raise
        return publisher

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """See ``Broker``.

        Read to the end of the topic rather than to the last committed record, because the last
        value of a key may come after another publisher's open transaction.
        """
        partition = TopicPartition(topic, 0)
        wanted = set(keys)
        found: dict[bytes, bytes] = {}
        async with self._errors(_POSITIONS_SECONDS):
            async with self._consumer(partition, "read_uncommitted") as consumer:
                end = (await consumer.end_offsets([partition]))[partition]
            async with self._consumer(partition, "read_committed") as consumer:
                await consumer.seek_to_beginning(partition)
                while await consumer.position(partition) < end:
                    read = await consumer.getmany(timeout_ms=int(_READ_SECONDS * _MILLISECONDS))
                    for record in read.get(partition, ()):
                        if record.key in wanted and record.value is not None:
                            found[record.key] = record.value
        return found

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(**self._client_options)
        try:
            await _started(admin.start())
            yield admin
        finally:
            await _within(_CLOSE_SECONDS, admin.close())

    @asynccontextmanager
    async def _consumer(
        self, partition: TopicPartition, isolation_level: str
    ) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            **self._client_options,
            isolation_level=isolation_level,
            enable_auto_commit=False,
            max_partition_fetch_bytes=_MAX_REQUEST_BYTES,
        )
        try:
            await _started(consumer.start())
            consumer.assign([partition])
            yield consumer
        finally:
            await _within(_CLOSE_SECONDS, consumer.stop())
            # If stopping did not complete, the connections are still open.
            await _within(_CLOSE_SECONDS, consumer._client.close())  # noqa: SLF001 - no public method closes them

    @asynccontextmanager
    async def _errors(self, seconds: float | None = None) -> AsyncIterator[None]:
        """Run work within a deadline, and convert its errors to the port's."""
        try:
            async with asyncio.timeout(seconds or self._settings.request_timeout_seconds):
                yield
        except BrokerError:
            raise
        except _REFUSALS as error:
            raise BrokerRefused(_error_text(error)) from error
        except TimeoutError as error:
            reason = await self._why_unreachable()
            raise reason or Unreachable("the broker did not answer in time") from error
        except (KafkaError, OSError) as error:
            raise await self._why_unreachable() or Unreachable(_error_text(error)) from error

    async def _why_unreachable(self) -> BrokerError | None:
        """The reason why no bootstrap server accepts a connection, which aiokafka only logs.

        None if one of them accepts.
        """
        reason: BrokerError | None = None
        for server in self._settings.bootstrap_servers:
            host, _, port = server.rpartition(":")
            options = self._client_options | {"host": host.strip("[]"), "port": int(port)}
            del options["bootstrap_servers"]
            try:
                async with asyncio.timeout(self._settings.request_timeout_seconds):
                    connection = await create_conn(**options)
            except _REFUSALS as error:
                return BrokerRefused(f"{server}: {_error_text(error)}")
            except (KafkaError, OSError, TimeoutError) as error:
                reason = Unreachable(f"{server}: {_error_text(error)}")
            else:
                connection.close()
                return None
        return reason


class KafkaPublisher:
    """A producer of aiokafka.

    Invariant: each caller has at most one batch in flight per partition, so no batch is accepted
    after one that failed.
    """

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def publish(
        self, topic: str, partition: int, messages: Sequence[KafkaMessage], max_batch_bytes: int
    ) -> None:
        """See ``Publisher``."""
        delivered = 0
        while delivered < len(messages):
            batch = self._batch(islice(messages, delivered, None), max_batch_bytes)
            count = batch.record_count()
            try:
                await self._deliver(topic, partition, batch)
            except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
                raise BatchTooLarge(_error_text(error), delivered, count) from error
            except ProducerFenced as error:
                raise PublisherFenced(_error_text(error), delivered) from error
            except (KafkaError, IllegalOperation) as error:
                raise DeliveryFailed(_error_text(error), delivered) from error
            except DeliveryFailed as error:
                raise DeliveryFailed(str(error), delivered) from error
            delivered += count

    def _batch(self, messages: Iterable[KafkaMessage], max_batch_bytes: int) -> Any:
        """A batch with as many of these records as fit, in order.

        A large record gets a batch of its own, so a refusal of the batch concerns that record.
        """
        batch = self._producer.create_batch()
        large_bytes = max_batch_bytes // _LARGE_SHARE
        for message in messages:
            is_large = len(message.key) + len(message.value or b"") >= large_bytes
            if is_large and batch.record_count():
                break
            added = batch.append(
                # None: aiokafka sets the time of sending. The value has domain time, which may be
                # virtual: Kafka refuses timestamps ahead of its own clock, and soon deletes records
                # with old ones.
                timestamp=None,
                key=message.key,
                value=message.value,
                headers=list(message.headers),
            )
            if is_large or added is None or batch.size() >= max_batch_bytes:
                break
        return batch

    async def _deliver(self, topic: str, partition: int, batch: Any) -> None:
        batch.close()
        if partition not in await self._producer.partitions_for(topic):
            raise DeliveryFailed(f"the topic {topic} has no partition {partition} any more")
        while True:
            try:
                sent = await self._producer.send_batch(batch, topic, partition=partition)
            except KafkaTimeoutError:
                # A batch of another caller is still in flight to this partition, so aiokafka sent
                # nothing.
                continue
            await self._unless_closing(sent)
            return

    async def begin(self) -> None:
        """See ``Publisher``."""
        try:
            await self._producer.begin_transaction()
        except (KafkaError, AssertionError) as error:
            # aiokafka asserts that the last transaction has ended.
            raise DeliveryFailed(_error_text(error)) from error

    async def commit(self) -> None:
        """See ``Publisher``."""
        scope = anyio.CancelScope()

        def give_up(_: asyncio.Future[None]) -> None:
            scope.cancel()

        self._closing.add_done_callback(give_up)
        try:
            with scope:
                await self._producer.commit_transaction()
        except ProducerFenced as error:
            raise PublisherFenced(_error_text(error)) from error
        except (KafkaError, AssertionError) as error:
            raise DeliveryFailed(_error_text(error)) from error
        finally:
            self._closing.remove_done_callback(give_up)
        if scope.cancelled_caught:
            raise DeliveryFailed("the publisher was discarded")

    async def close(self) -> None:
        """See ``Publisher``."""
        if self._closing.done():
            return
        self._closing.set_result(None)
        sending = self._producer._sender.sender_task  # noqa: SLF001 - no public method ends it
        # ``stop`` waits for the records in flight: it would not return without the broker.
        await _within(_CLOSE_SECONDS, self._producer.stop())
        await _within(_CLOSE_SECONDS, self._producer.client.close())
        if sending is not None and not sending.done():
            sending.cancel()
            await asyncio.wait([sending], timeout=_CLOSE_SECONDS)
        for future in _futures_within(self._producer):
            if future.done() and not future.cancelled():
                # asyncio logs each exception that is never retrieved, with a traceback.
                future.exception()

    async def _unless_closing(self, answered: asyncio.Future[Any]) -> None:
        """Wait for an answer, unless the publisher is discarded meanwhile."""
        try:
            await asyncio.wait({answered, self._closing}, return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                raise DeliveryFailed("the publisher was discarded")
            answered.result()
        finally:
            # Otherwise asyncio reports a later error as never retrieved.
            answered.cancel()


def _futures_within(producer: AIOKafkaProducer) -> Iterator[asyncio.Future[Any]]:
    """The internal futures of aiokafka, which get an exception when the producer fails."""
    waiting = producer._txn_manager._transaction_waiter  # noqa: SLF001 - no public method returns it
    if waiting is not None:
        yield waiting
    accumulator = producer._message_accumulator  # noqa: SLF001 - as above
    queued = chain.from_iterable(accumulator._batches.values())  # noqa: SLF001 - as above
    for batch in (*queued, *accumulator._pending_batches):  # noqa: SLF001 - as above
        yield batch.future
        yield batch._drain_waiter  # noqa: SLF001 - as above


async def _started(start: Coroutine[Any, Any, None]) -> None:
    """Start one of aiokafka's clients.

    A client that stops halfway leaves a connection that can't be closed. So a cancellation first
    waits for the start, for a limited time.
    """
    starting = asyncio.gather(start)
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([starting], timeout=_CLOSE_SECONDS)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        raise


async def _within(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    """Wait for closing work for a limited time, even if the caller is canceled.

    The work runs in a task of its own, because aiokafka cancels its fetches when it closes. A fetch
    that waits for a broker to come back passes its cancellation on to the caller.
    """
    closing = asyncio.gather(work, return_exceptions=True)
    # The result of work that continues in the background does not matter.
    closing.add_done_callback(_closing_error)
    try:
        with anyio.CancelScope(shield=True):
            await asyncio.wait([closing], timeout=seconds)
            closing.cancel()
            await asyncio.wait([closing], timeout=seconds)
    finally:
        closing.cancel()
    error = _closing_error(closing) if closing.done() else TimeoutError()
    if isinstance(error, TimeoutError | KafkaError | OSError | asyncio.CancelledError):
        _log.debug("client_close_failed", error=_error_text(error))
    elif error is not None:
        raise error


def _closing_error(closed: asyncio.Future[tuple[BaseException | None]]) -> BaseException | None:
    """The exception that closing raised; None without one."""
    if closed.cancelled():
        return asyncio.CancelledError()
    return closed.exception() or closed.result()[0]


def _client_options(settings: BrokerSettings) -> dict[str, Any]:
    return {
        "bootstrap_servers": list(settings.bootstrap_servers),
        "client_id": "dynactor",
        "request_timeout_ms": int(settings.request_timeout_seconds * _MILLISECONDS),
        "security_protocol": settings.security_protocol,
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": settings.sasl_password,
        "ssl_context": _ssl_context(settings),
    }


def _ssl_context(settings: BrokerSettings) -> ssl.SSLContext | None:
    if settings.security_protocol not in ("SSL", "SASL_SSL"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_file)
        if settings.ssl_certificate_file is not None:
            context.load_cert_chain(settings.ssl_certificate_file, settings.ssl_key_file)
    except OSError as error:
        raise BrokerRefused(f"a TLS file can't be used: {error}") from error
    return context


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__
