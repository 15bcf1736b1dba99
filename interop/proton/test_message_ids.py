"""Message ids: a message that is sent without one gets one from the broker, which stays the same."""

import re

import pytest

from proton import Message, ulong

from raw import bare, receive_bytes, send_bytes, sections
from support import Queue, decoded

DATA = bytes.fromhex("005375 a0 02 6869")
FOOTER = bytes.fromhex("005378 c1 07 02 a3 01 66 a1 01 67")
# What stands before the thirteen fields of properties with an id of 32 bytes: list8, str8.
PROPERTIES_WITH_ID = bytes.fromhex("005373 c0 2f 0d a1 20")


def ids(messages):
    return [one.id for one in messages]


def assert_assigned(ids):
    assert all(re.fullmatch("[0-9a-fA-F]{32}", one) for one in ids)
    assert len(set(ids)) == len(ids)


def test_a_message_sent_without_an_id_gets_one_that_stays(plain):
    plain.send(*(Message(body=number) for number in range(3)))
    receiver = plain.receiver()
    with plain.management() as management:
        assigned = ids(management.peek())
        assert len(assigned) == 3
        assert_assigned(assigned)
        first = [receiver.receive() for _ in range(3)]
        assert [one.message.id for one in first] == assigned
        for one in first:
            receiver.abandon(one)
        for one in [receiver.receive() for _ in range(3)]:
            receiver.defer(one)
        for one in first:
            encoded, token = management.take_deferred(one.number)
            assert decoded(encoded).id == one.message.id
            assert management.update_disposition("suspended", token).status == 200
    assert ids(plain.dead_letter.take(3)) == assigned


def test_messages_scheduled_by_a_request_without_ids_get_ids(plain):
    entry = {"message": Message(body="later").encode()}
    with plain.management() as management:
        answer = management.request("com.microsoft:schedule-message", {"messages": [entry, entry]})
        assert answer.status == 200
    assert_assigned(ids(plain.take(2)))


@pytest.mark.parametrize("given", ["given", "", ulong(0)], ids=repr)
def test_an_id_that_the_sender_gave_is_kept(plain, given):
    plain.send(Message(body="body", id=given))
    (received,) = plain.take()
    assert (type(received.id), received.id) == (type(Message(id=given).id), given)


def test_all_else_of_the_message_stays_as_it_was(connection, forever):
    send_bytes(connection, forever, DATA + FOOTER)
    encoded = bare(receive_bytes(forever))
    (_, properties), *rest = sections(encoded)
    assert properties.startswith(PROPERTIES_WITH_ID)
    assert [section for _, section in rest] == [DATA, FOOTER]
    # An id that is null, and a subject.
    send_bytes(connection, forever, bytes.fromhex("005373 c0 0a 04 40 40 40 a1 04 6f726465") + DATA)
    received = decoded(receive_bytes(forever))
    assert_assigned([received.id])
    assert (received.subject, received.address, bytes(received.body)) == ("orde", None, b"hi")


def test_a_forwarded_message_and_a_forwarded_dead_letter_keep_their_ids(own_connection):
    target, forward, mortal = (Queue(own_connection, name) for name in ("target", "forward", "mortal"))
    forward.send(Message(body="forwarded"))
    mortal.send(Message(body="doomed"))
    receiver = mortal.receiver()
    doomed = receiver.receive()
    receiver.reject(doomed)
    arrived = {one.body: one.id for one in target.take(2)}
    assert_assigned(arrived.values())
    assert arrived["doomed"] == doomed.message.id
