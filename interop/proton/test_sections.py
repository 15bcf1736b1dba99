"""Sections of a message: in any order they are accepted and put right, and each may stand once."""

import pytest

from proton import Delivery

from raw import OF_THE_BROKER, receive_bytes, sections, send_bytes, try_bytes
from support import SEQUENCE_NUMBER, decoded, message

HEADER = bytes.fromhex("005370 c0 04 02 41 5007")
DELIVERY_ANNOTATIONS = bytes.fromhex("005371 c1 08 02 a3 03 782d64 54 05")
MESSAGE_ANNOTATIONS = bytes.fromhex("005372 c1 0a 02 a3 03 782d6d a1 02 6f6b")
PROPERTIES = bytes.fromhex("005373 c0 07 01 a1 04 68616e64")
APPLICATION_PROPERTIES = bytes.fromhex("005374 c1 07 02 a1 01 6b a1 01 76")
DATA = bytes.fromhex("005375 a0 02 6869")
MORE_DATA = bytes.fromhex("005375 a0 01 21")
SEQUENCE = bytes.fromhex("005376 c0 03 01 5401")
VALUE = bytes.fromhex("005377 a1 01 76")
FOOTER = bytes.fromhex("005378 c1 07 02 a3 01 66 a1 01 67")

# In the order of the standard.
WHOLE = [
    HEADER,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    APPLICATION_PROPERTIES,
    DATA + MORE_DATA,
    FOOTER,
]
BARE = [PROPERTIES, APPLICATION_PROPERTIES, DATA, MORE_DATA, FOOTER]

ORDERS = {
    "as the standard has it": WHOLE,
    "delivery annotations last, as Python writes": [*WHOLE[:1], *WHOLE[2:], DELIVERY_ANNOTATIONS],
    "footer before the body, as rhea writes": [*WHOLE[:5], FOOTER, WHOLE[5]],
    "backwards": WHOLE[::-1],
    "body first": [WHOLE[5], *WHOLE[:5], FOOTER],
    "header last": [*WHOLE[1:], HEADER],
    "properties behind application properties": [*WHOLE[:3], APPLICATION_PROPERTIES, PROPERTIES, *WHOLE[5:]],
}


def assert_whole(encoded):
    """All is there, the sender's annotations among the broker's own, in the order of the standard."""
    found = sections(encoded)
    assert [code for code, _ in found] == [0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x75, 0x78]
    assert [section for code, section in found if code not in OF_THE_BROKER] == BARE
    received = decoded(encoded)
    assert (received.durable, received.priority) == (True, 7)
    assert received.instructions["x-d"] == 5
    assert received.annotations["x-m"] == "ok"
    assert SEQUENCE_NUMBER in received.annotations


@pytest.mark.parametrize("order", ORDERS)
def test_sections_in_any_order_are_put_right(connection, forever, order):
    send_bytes(connection, forever, b"".join(ORDERS[order]))
    with forever.management() as management:
        assert_whole(management.peek_bytes())
    assert_whole(receive_bytes(forever))


def test_a_body_of_any_kind_may_stand_anywhere(connection, forever):
    for body in (DATA, MORE_DATA + DATA, SEQUENCE + SEQUENCE, VALUE):
        for place in range(3):
            order = [PROPERTIES, FOOTER]
            order.insert(place, body)
            send_bytes(connection, forever, b"".join(order))
            found = b"".join(section for code, section in sections(receive_bytes(forever)) if code > 0x72)
            assert found == PROPERTIES + body + FOOTER


TWICE = {
    "header": HEADER,
    "delivery annotations": DELIVERY_ANNOTATIONS,
    "message annotations": MESSAGE_ANNOTATIONS,
    "properties": PROPERTIES,
    "application properties": APPLICATION_PROPERTIES,
    "footer": FOOTER,
}
REFUSED = {
    **{f"two of {name}, together": [section, section, DATA] for name, section in TWICE.items()},
    **{f"two of {name}, apart": [section, DATA, section] for name, section in TWICE.items()},
    "two values": [VALUE, VALUE],
    "data and a value": [DATA, VALUE],
    "a sequence and data": [SEQUENCE, DATA],
    "data that is not together": [DATA, PROPERTIES, MORE_DATA],
    "data around the footer": [DATA, FOOTER, MORE_DATA],
    "a section that is none": [bytes.fromhex("005379 45"), DATA],
}


def test_a_section_that_stands_twice_is_rejected_and_the_link_stays(connection, plain):
    sender = plain.sender()
    for name, refused in REFUSED.items():
        delivery = try_bytes(connection, sender, b"".join(refused))
        assert delivery.remote_state == Delivery.REJECTED, name
        assert delivery.remote.condition.name == "amqp:decode-error", name
    sent = message()
    assert sender.send(sent).remote_state == Delivery.ACCEPTED
    assert [one.id for one in plain.take()] == [sent.id]
    assert plain.peek() == []


def schedule(management, *encoded):
    return management.request("com.microsoft:schedule-message", {"messages": [{"message": one} for one in encoded]})


def test_a_message_in_a_request_has_its_sections_put_right(forever):
    # Its time is past, so it is there at once.
    annotations = bytes.fromhex("005372 c1 28 02 a3 1c 782d6f70742d7363686564756c65642d656e71756575652d74696d65 83 0000000000000001")
    with forever.management() as management:
        assert schedule(management, FOOTER + DATA + APPLICATION_PROPERTIES + PROPERTIES + annotations).status == 200
        found = sections(management.peek_bytes())
        assert [code for code, _ in found] == [0x70, 0x72, 0x73, 0x74, 0x75, 0x78]
        assert [section for code, section in found[2:]] == [PROPERTIES, APPLICATION_PROPERTIES, DATA, FOOTER]
        answer = schedule(management, annotations + DATA, annotations + FOOTER + DATA + FOOTER)
        assert (answer.status, answer.condition) == (400, "amqp:decode-error")
        assert len(management.peek()) == 1
