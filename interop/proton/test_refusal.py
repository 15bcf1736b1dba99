"""Refusals: wrong key, no token, a queue that does not exist; each leaves other connections alone."""

import pytest

from proton import ConnectionException
from proton.utils import LinkDetached

from support import KEY_NAME, PREFIX, Queue, connect, message


@pytest.mark.parametrize(
    ("user", "password"), [(KEY_NAME, "wrong"), ("nobody", "SAS_KEY_VALUE"), (KEY_NAME, "sas_key_value")]
)
def test_a_wrong_key_fails_authentication(plain, user, password):
    with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
        connect(user, password)
    plain.send(message("still served"))


@pytest.mark.parametrize("create", ["create_sender", "create_receiver"])
def test_an_anonymous_client_without_a_token_may_attach_nothing(plain, create):
    anonymous = connect(user=None, password=None, mechanisms="ANONYMOUS")
    with pytest.raises(LinkDetached) as raised:
        getattr(anonymous, create)(plain.name)
    assert raised.value.condition == "amqp:unauthorized-access"
    anonymous.close()


@pytest.mark.parametrize("create", ["create_sender", "create_receiver"])
def test_a_missing_queue_is_not_found(connection, plain, create):
    with pytest.raises(LinkDetached, match="The messaging entity .* could not be found") as raised:
        getattr(connection, create)(f"{PREFIX}-missing")
    assert raised.value.condition == "amqp:not-found"
    plain.send(message("the same connection still serves"))


def test_sending_to_a_dead_letter_queue_is_not_allowed(connection, plain):
    with pytest.raises(LinkDetached) as raised:
        Queue(connection, plain.name).dead_letter.sender()
    assert raised.value.condition == "amqp:not-allowed"


@pytest.mark.parametrize("form", ["/{}", "amqps://localhost/{}", "amqp://localhost:5672/{}/", "//{}"])
def test_every_form_of_an_address_reaches_the_queue(connection, plain, form):
    sent = message()
    Queue(connection, form.format(plain.name)).send(sent)
    assert [one.id for one in plain.take()] == [sent.id]


def test_a_queue_name_is_the_same_in_any_case(connection, plain):
    sent = message()
    Queue(connection, plain.name.upper()).send(sent)
    assert [one.id for one in plain.take()] == [sent.id]
