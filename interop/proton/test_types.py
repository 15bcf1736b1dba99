"""What a message carries comes back as it was sent, type by type and byte by byte."""

import uuid

from proton import (
    UNDESCRIBED,
    Array,
    Data,
    Described,
    Message,
    byte,
    char,
    decimal32,
    decimal64,
    decimal128,
    float32,
    int32,
    short,
    symbol,
    timestamp,
    ubyte,
    uint,
    ulong,
    ushort,
)

from raw import bare, receive_bytes, section_length, send_bytes
from support import message

PROPERTIES = {
    "null": None,
    "true": True,
    "false": False,
    "ubyte": ubyte(255),
    "ushort": ushort(65535),
    "uint zero": uint(0),
    "uint small": uint(255),
    "uint": uint(2**32 - 1),
    "ulong zero": ulong(0),
    "ulong": ulong(2**64 - 1),
    "byte": byte(-128),
    "short": short(-32768),
    "int small": int32(-1),
    "int": int32(-(2**31)),
    "long small": -128,
    "long": -(2**63),
    "float": float32(1.5),
    "double": 1.0000000000000002,
    "decimal32": decimal32(0x22500000),
    "decimal64": decimal64(0x2238000000000001),
    "decimal128": decimal128(bytes(range(16))),
    "char": char("☃"),
    "timestamp": timestamp(1709209815250),
    "uuid": uuid.uuid4(),
    "binary": bytes(range(256)),
    "empty binary": b"",
    "string": "naïve ☃ 𝄞",
    "empty string": "",
    "long string": "s" * 300,
    "symbol": symbol("a-symbol"),
    "described": Described(symbol("com.microsoft:timespan"), 600000000),
}


def copied(value):
    """Proton shows binary as a view of memory that goes with the message."""
    return bytes(value) if isinstance(value, memoryview) else value


def same(left, right):
    return type(left) is type(right) and (
        (left.descriptor, left.value) == (right.descriptor, right.value) if isinstance(left, Described) else left == right
    )


def test_application_properties_of_every_type_come_back_equal(plain):
    plain.send(message(properties=PROPERTIES))
    (received,) = plain.take()
    assert list(received.properties) == list(PROPERTIES)
    different = [name for name in PROPERTIES if not same(copied(received.properties[name]), PROPERTIES[name])]
    assert different == []


def test_message_properties_come_back_equal(plain):
    fields = {
        "id": uuid.uuid4(),
        "user_id": b"user",
        "address": "somewhere",
        "subject": "orders",
        "reply_to": "the reply queue",
        "correlation_id": ulong(2**64 - 1),
        "content_type": symbol("application/json"),
        "content_encoding": symbol("gzip"),
        "creation_time": 1709209815.25,
        "group_id": "session",
        "group_sequence": 7,
        "reply_to_group_id": "reply session",
        "priority": 9,
        "durable": True,
    }
    sent = message(annotations={symbol("x-opt-partition-key"): "session"}, **fields)
    plain.send(sent)
    (received,) = plain.take()
    assert {name: getattr(received, name) for name in fields} == fields
    assert received.annotations["x-opt-partition-key"] == "session"


def test_bodies_of_every_kind_come_back_equal(plain):
    bodies = [
        b"data",
        "string",
        17,
        [1, "two", None, [3.0]],
        {"key": {"nested": [True, b"x"]}},
        Array(UNDESCRIBED, Data.INT, 1, 2, 3),
    ]
    plain.send(*(message(body) for body in bodies))
    received = plain.take(len(bodies))
    assert [copied(one.body) for one in received] == bodies


def test_a_message_without_a_body_comes_back_without_one(connection, forever):
    without_body = PROPERTIES_SECTION + FOOTER_SECTION
    send_bytes(connection, forever, without_body)
    with forever.management() as management:
        assert bare(management.peek_bytes()) == without_body
        receiver = forever.receiver()
        received = receiver.receive()
        receiver.defer(received)
        encoded, token = management.take_deferred(received.number)
        assert bare(encoded) == without_body
        assert management.update_disposition("completed", token).status == 200
    send_bytes(connection, forever, without_body)
    assert bare(receive_bytes(forever)) == without_body


# A bare message written by hand, with encodings that no library would choose: properties as list32 with a
# str32 id, application-properties as map32 with wide integers and a described value, two data sections and
# a footer.
PROPERTIES_SECTION = bytes.fromhex("005373 d0 0000000d 00000001 b1 00000004 68616e64")
APPLICATION_PROPERTIES_SECTION = bytes.fromhex(
    "005374 d1 0000002a 00000008"
    "a1 01 61 80 0000000000000001"
    "b1 00000001 62 00 a3 03 782d79 71 00000002"
    "a1 01 63 56 01"
    "a1 01 64 40"
)
BODY_SECTIONS = bytes.fromhex("005375 b0 00000003 010203  005375 a0 01 ff")
FOOTER_SECTION = bytes.fromhex("005378 c1 07 02 a3 01 66 a1 01 67")
BARE_MESSAGE = PROPERTIES_SECTION + APPLICATION_PROPERTIES_SECTION + BODY_SECTIONS + FOOTER_SECTION


def test_the_bare_message_comes_back_byte_for_byte(connection, forever):
    send_bytes(connection, forever, BARE_MESSAGE)
    with forever.management() as management:
        assert bare(management.peek_bytes()) == BARE_MESSAGE
    assert bare(receive_bytes(forever)) == BARE_MESSAGE


def test_a_peek_without_bodies_has_all_other_sections(connection, forever):
    send_bytes(connection, forever, BARE_MESSAGE)
    with forever.management() as management:
        peeked = bare(management.peek_bytes(**{"omit-message-body": True}))
    assert peeked == PROPERTIES_SECTION + APPLICATION_PROPERTIES_SECTION + FOOTER_SECTION


def test_after_the_properties_a_limited_message_comes_back_byte_for_byte(connection, plain):
    """Where a time to live applies, the broker writes the expiry into the properties and touches nothing else."""
    send_bytes(connection, plain, BARE_MESSAGE)
    received = bare(receive_bytes(plain))
    assert received.startswith(b"\x00\x53\x73")
    assert received[section_length(received) :] == BARE_MESSAGE[len(PROPERTIES_SECTION) :]


def test_the_hand_written_message_is_well_formed():
    decoded = Message()
    decoded.decode(BARE_MESSAGE)
    assert decoded.id == "hand"
    assert list(decoded.properties) == ["a", "b", "c", "d"]
