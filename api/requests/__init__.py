"""Requests: the shapes of their input, its validation, and the parts that operations share.

``inputs.py`` has the inputs of DynamoDB's operations, generated from botocore's service models.
``shapes.py`` has the simple shapes with rules that the models do not have. Decoding a body into an
input is the fast path. If that fails, ``input_decoder.py`` walks the body again and finds the
errors in DynamoDB's order: JSON types first, then all broken constraints. The operation's own rules
follow, raised as errors of ``model/errors.py``. Only ``api/http/protocol.py`` turns them into JSON.

``validation_errors.py`` alone defines the texts and the order of request errors by operation. AWS
checks requests in two layers, an older and a newer one, and each operation belongs to one of them.
The messages in ``model/`` are those of the older layer. An error with another text in the newer
layer has a ``Fault`` (``model/validation_faults.py``). PutItem, UpdateItem and DeleteItem mark the
checks that need no table (``marks_request_errors``), because the newer layer puts a prefix with the
number of errors before their messages.
"""
