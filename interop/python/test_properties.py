"""What a message carries comes back as it was sent.

On receipt this SDK shows keys and strings as bytes and timestamps as milliseconds.
"""

import uuid
from datetime import datetime, timedelta, timezone

from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType

from support import body_of, message


def test_application_properties_of_every_type_come_back_equal(plain):
    token = uuid.uuid4()
    moment = datetime(2024, 2, 29, 12, 30, 15, 250000, tzinfo=timezone.utc)
    plain.send(
        message(
            application_properties={
                "null": None,
                "true": True,
                "false": False,
                "zero": 0,
                "small": -128,
                "int": 2**31 - 1,
                "least": -(2**31),
                "long": {"TYPE": "LONG", "VALUE": -(2**63)},
                "ulong": {"TYPE": "ULONG", "VALUE": 2**64 - 1},
                "double": 1.0000000000000002,
                "negative": -0.1,
                "string": "naïve ☃ 𝄞",
                "empty": "",
                # The SDK sends bytes as a string, so they must be text.
                "bytes": b"text",
                "uuid": token,
                "timestamp": moment,
            }
        )
    )
    (received,) = plain.take()
    assert received.application_properties == {
        b"null": None,
        b"true": True,
        b"false": False,
        b"zero": 0,
        b"small": -128,
        b"int": 2**31 - 1,
        b"least": -(2**31),
        b"long": -(2**63),
        b"ulong": 2**64 - 1,
        b"double": 1.0000000000000002,
        b"negative": -0.1,
        b"string": "naïve ☃ 𝄞".encode(),
        b"empty": b"",
        b"bytes": b"text",
        b"uuid": token,
        b"timestamp": int(moment.timestamp() * 1000),
    }
    assert received.application_properties[b"true"] is True
    assert received.application_properties[b"zero"] is not False


def test_message_properties_come_back_equal(plain):
    sent = message(
        b"\x00\x01binary\xff",
        correlation_id="the request",
        subject="orders",
        content_type="application/json; charset=utf-8",
        to="somewhere",
        reply_to="the reply queue",
        reply_to_session_id="reply session",
        session_id="session",
        partition_key="session",
        time_to_live=timedelta(minutes=10),
    )
    plain.send(sent)
    (received,) = plain.take()
    for name in (
        "message_id",
        "correlation_id",
        "subject",
        "content_type",
        "to",
        "reply_to",
        "reply_to_session_id",
        "session_id",
        "partition_key",
        "time_to_live",
    ):
        assert getattr(received, name) == getattr(sent, name), name
    assert body_of(received) == b"\x00\x01binary\xff"


def test_a_value_body_comes_back_as_a_value(plain):
    value = {b"key": [1, 2.5, b"text", None, True]}
    plain.send(AmqpAnnotatedMessage(value_body=value))
    (received,) = plain.take()
    assert received.body_type == AmqpMessageBodyType.VALUE
    assert received.raw_amqp_message.body == value


def test_an_empty_body_comes_back_empty(plain):
    plain.send(message(b""))
    assert body_of(plain.take()[0]) == b""
