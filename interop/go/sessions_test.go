package interop

// Sessions: one holder at a time, in order, with a state of its own.

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

const sessionQueue = prefix + "-sessions"

// newSession is an id that no other test or run has used.
func newSession() string {
	return *message("").MessageID
}

func sendTo(t *testing.T, client *azservicebus.Client, session string, bodies ...string) {
	t.Helper()
	sender, err := client.NewSender(sessionQueue, nil)
	must(t, err)
	for _, body := range bodies {
		one := message(body)
		one.SessionID = &session
		must(t, sender.SendMessage(within(t, patience), one, nil))
	}
	must(t, sender.Close(context.Background()))
}

func accept(t *testing.T, client *azservicebus.Client, session string) *azservicebus.SessionReceiver {
	t.Helper()
	receiver, err := client.AcceptSessionForQueue(within(t, patience), sessionQueue, session, nil)
	must(t, err)
	t.Cleanup(func() { _ = receiver.Close(context.Background()) })
	return receiver
}

func receiveIn(t *testing.T, receiver *azservicebus.SessionReceiver, count int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var received []*azservicebus.ReceivedMessage
	for len(received) < count {
		batch, err := receiver.ReceiveMessages(within(t, patience), count-len(received), nil)
		must(t, err)
		received = append(received, batch...)
	}
	return received
}

func bodiesOf(received []*azservicebus.ReceivedMessage) []string {
	var bodies []string
	for _, one := range received {
		bodies = append(bodies, string(one.Body))
	}
	return bodies
}

// dropAll takes what an interrupted run left in any session.
func dropAll(t *testing.T, client *azservicebus.Client) {
	t.Helper()
	options := &azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	for {
		receiver, err := client.AcceptNextSessionForQueue(within(t, 2*time.Second), sessionQueue, options)
		if err != nil {
			return
		}
		_, _ = receiver.ReceiveMessages(within(t, time.Second), 100, nil)
		must(t, receiver.Close(context.Background()))
	}
}

func TestASessionIsAcceptedByIDAndComesInOrderToItsHolderAlone(t *testing.T) {
	client := connect(t, connectionString())
	session, other := newSession(), newSession()
	sendTo(t, client, session, "one")
	sendTo(t, client, other, "of another")
	sendTo(t, client, session, "two", "three")
	receiver := accept(t, client, session)
	equal(t, "session", receiver.SessionID(), session)
	received := receiveIn(t, receiver, 3)
	equal(t, "bodies", bodiesOf(received), []string{"one", "two", "three"})
	_, err := client.AcceptSessionForQueue(within(t, patience), sessionQueue, session, nil)
	if err == nil {
		t.Fatal("a held session was accepted")
	}
	for _, one := range received {
		must(t, receiver.CompleteMessage(within(t, patience), one, nil))
	}
	rest := accept(t, client, other)
	must(t, rest.CompleteMessage(within(t, patience), receiveIn(t, rest, 1)[0], nil))
}

func TestIDsThatDifferInLetterCaseAreOneSession(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	ids := []string{"Order-" + session, "ORDER-" + session, "order-" + session}
	for _, id := range ids {
		sendTo(t, client, id, id)
	}
	receiver := accept(t, client, "oRDER-"+session)
	equal(t, "session", receiver.SessionID(), "oRDER-"+session)
	received := receiveIn(t, receiver, 3)
	for i, one := range received {
		equal(t, "id", *one.SessionID, ids[i])
	}
	must(t, receiver.SetSessionState(within(t, patience), []byte("known"), nil))
	_, err := client.AcceptSessionForQueue(within(t, patience), sessionQueue, ids[0], nil)
	if err == nil {
		t.Fatal("a held session was accepted")
	}
	for _, one := range received {
		must(t, receiver.CompleteMessage(within(t, patience), one, nil))
	}
	must(t, receiver.Close(within(t, patience)))
	again := accept(t, client, ids[1])
	state, err := again.GetSessionState(within(t, patience), nil)
	must(t, err)
	equal(t, "state", string(state), "known")
	must(t, again.SetSessionState(within(t, patience), nil, nil))
}

func TestTheNextSessionIsTheOneWhoseFirstMessageIsOldest(t *testing.T) {
	client := connect(t, connectionString())
	dropAll(t, client)
	first, second := newSession(), newSession()
	sendTo(t, client, first, "one")
	sendTo(t, client, second, "two")
	for _, expected := range []string{first, second} {
		receiver, err := client.AcceptNextSessionForQueue(within(t, patience), sessionQueue, nil)
		must(t, err)
		equal(t, "session", receiver.SessionID(), expected)
		must(t, receiver.CompleteMessage(within(t, patience), receiveIn(t, receiver, 1)[0], nil))
		must(t, receiver.Close(context.Background()))
	}
	_, err := client.AcceptNextSessionForQueue(within(t, time.Second), sessionQueue, nil)
	if err == nil {
		t.Fatal("there was a session")
	}
}

func TestAStateSurvivesItsHolder(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	state := []byte{0, 255, 1}
	receiver := accept(t, client, session)
	must(t, receiver.SetSessionState(within(t, patience), state, nil))
	must(t, receiver.Close(context.Background()))
	receiver = accept(t, client, session)
	found, err := receiver.GetSessionState(within(t, patience), nil)
	must(t, err)
	if !bytes.Equal(found, state) {
		t.Fatalf("got %v, want %v", found, state)
	}
	for _, empty := range [][]byte{nil, {}} {
		must(t, receiver.SetSessionState(within(t, patience), state, nil))
		must(t, receiver.SetSessionState(within(t, patience), empty, nil))
		found, err = receiver.GetSessionState(within(t, patience), nil)
		must(t, err)
		if found != nil {
			t.Fatalf("the state is %v, want none", found)
		}
	}
}

func TestARenewedSessionIsHeldLongerThanItsLock(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one")
	receiver := accept(t, client, session)
	received := receiveIn(t, receiver, 1)[0]
	end := receiver.LockedUntil()
	waitUntilPassed(end.Add(-3 * time.Second))
	must(t, receiver.RenewSessionLock(within(t, patience), nil))
	if !receiver.LockedUntil().After(end) {
		t.Fatal("the lock ends when it did")
	}
	waitUntilPassed(end)
	must(t, receiver.CompleteMessage(within(t, patience), received, nil))
}

func TestASessionThatIsNotRenewedIsLostAndItsMessagesComeAgain(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one")
	receiver := accept(t, client, session)
	receiveIn(t, receiver, 1)
	// Settling now would have this SDK accept the session anew and wait in vain for an answer.
	waitUntilPassed(receiver.LockedUntil())
	again := accept(t, client, session)
	received := receiveIn(t, again, 1)[0]
	equal(t, "deliveries", received.DeliveryCount, uint32(2))
	must(t, again.CompleteMessage(within(t, patience), received, nil))
}

// The greatest time there is: a message has no lock of its own, it is locked for as long as its session.
var forAsLongAsItsSession = time.Date(9999, time.December, 31, 23, 59, 59, 999_000_000, time.UTC)

func TestAMessageIsLockedForAsLongAsItsSession(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one")
	receiver := accept(t, client, session)
	if deadline := receiver.LockedUntil(); deadline.After(time.Now().Add(time.Minute)) {
		t.Fatalf("the session is locked until %s", deadline)
	}
	received := receiveIn(t, receiver, 1)[0]
	equal(t, "end of its lock", endOfLock(t, received), forAsLongAsItsSession)
	peeked, err := receiver.PeekMessages(within(t, patience), 1, &azservicebus.PeekMessagesOptions{
		FromSequenceNumber: received.SequenceNumber,
	})
	must(t, err)
	equal(t, "end of its lock in a peek", endOfLock(t, peeked[0]), forAsLongAsItsSession)
	must(t, receiver.DeferMessage(within(t, patience), received, nil))
	deferred, err := receiver.ReceiveDeferredMessages(within(t, patience), []int64{*received.SequenceNumber}, nil)
	must(t, err)
	equal(t, "end of its lock when it was deferred", endOfLock(t, deferred[0]), forAsLongAsItsSession)
	must(t, receiver.CompleteMessage(within(t, patience), deferred[0], nil))
}

// Whenever a lock is lost, this SDK takes the session for lost too: it gives it back, accepts it anew and tries again,
// for longer than a test may wait.
func TestASecondSettlementIsRefusedAndTheSessionGoesOn(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one", "two")
	receiver := accept(t, client, session)
	received := receiveIn(t, receiver, 1)[0]
	must(t, receiver.DeferMessage(within(t, patience), received, nil))
	deferred, err := receiver.ReceiveDeferredMessages(within(t, patience), []int64{*received.SequenceNumber}, nil)
	must(t, err)
	must(t, receiver.CompleteMessage(within(t, patience), deferred[0], nil))
	err = receiver.CompleteMessage(within(t, time.Second), deferred[0], nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got error %v", err)
	}
	second := receiveIn(t, receiver, 1)[0]
	equal(t, "body", string(second.Body), "two")
	must(t, receiver.CompleteMessage(within(t, patience), second, nil))
}

func TestAnIdleSessionIsFreeHalfASecondAfterItsLock(t *testing.T) {
	broker, q := virtual(t)
	broker.freeze()
	const name, session = "sessions", "idle"
	_, err := q.client.AcceptSessionForQueue(within(t, patience), name, session, nil)
	must(t, err)
	other := connect(t, broker.connectionString)
	held := func() {
		t.Helper()
		_, err := other.AcceptSessionForQueue(within(t, patience), name, session, nil)
		var refused *amqp.Error
		if !errors.As(err, &refused) || refused.Condition != "com.microsoft:session-cannot-be-locked" {
			t.Fatalf("got error %v", err)
		}
	}
	broker.advance("PT5M")
	held()
	broker.advance("PT0.499S")
	held()
	broker.advance("PT0.001S")
	_, err = other.AcceptSessionForQueue(within(t, patience), name, session, nil)
	must(t, err)
}

func TestAnAbandonedMessageOfASessionComesBeforeThoseBehindIt(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one", "two")
	receiver := accept(t, client, session)
	must(t, receiver.AbandonMessage(within(t, patience), receiveIn(t, receiver, 1)[0], nil))
	received := receiveIn(t, receiver, 2)
	equal(t, "bodies", bodiesOf(received), []string{"one", "two"})
	for _, one := range received {
		must(t, receiver.CompleteMessage(within(t, patience), one, nil))
	}
}

// This SDK peeks without naming the session, so it would see those of the others too.
func TestDeferredMessagesAreThoseOfTheSession(t *testing.T) {
	client := connect(t, connectionString())
	session, other := newSession(), newSession()
	sendTo(t, client, session, "one")
	sendTo(t, client, other, "of another")
	receiver := accept(t, client, session)
	received := receiveIn(t, receiver, 1)[0]
	must(t, receiver.DeferMessage(within(t, patience), received, nil))
	deferred, err := receiver.ReceiveDeferredMessages(within(t, patience), []int64{*received.SequenceNumber}, nil)
	must(t, err)
	equal(t, "deferred", bodiesOf(deferred), []string{"one"})
	must(t, receiver.CompleteMessage(within(t, patience), deferred[0], nil))
	rest := accept(t, client, other)
	_, err = rest.ReceiveDeferredMessages(within(t, patience), []int64{*received.SequenceNumber}, nil)
	failsWith(t, err, azservicebus.CodeNotFound)
	must(t, rest.CompleteMessage(within(t, patience), receiveIn(t, rest, 1)[0], nil))
}

func TestDeadLettersAreReceivedWithoutASession(t *testing.T) {
	client := connect(t, connectionString())
	session := newSession()
	sendTo(t, client, session, "one")
	receiver := accept(t, client, session)
	must(t, receiver.DeadLetterMessage(within(t, patience), receiveIn(t, receiver, 1)[0], &azservicebus.DeadLetterOptions{
		Reason: pointer("why"),
	}))
	dead := queue{t, client, sessionQueue}.receiver(deleteDead)
	found := receiveOne(t, dead)
	for *found.SessionID != session {
		found = receiveOne(t, dead)
	}
	equal(t, "reason", *found.DeadLetterReason, "why")
}

func TestSessionsWithMessagesOrStateAreListed(t *testing.T) {
	_, q := virtual(t)
	const name = "sessions"
	sender, err := q.client.NewSender(name, nil)
	must(t, err)
	one := message("one")
	one.SessionID = pointer("with messages")
	must(t, sender.SendMessage(within(t, patience), one, nil))
	before := time.Now().Add(-time.Minute)
	holder, err := q.client.AcceptSessionForQueue(within(t, patience), name, "with state", nil)
	must(t, err)
	must(t, holder.SetSessionState(within(t, patience), []byte("here"), nil))
	equal(t, "all", listed(t, q.client, name, nil), []string{"with messages", "with state"})
	since := &azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: &before}
	equal(t, "updated", listed(t, q.client, name, since), []string{"with state"})
}

func listed(t *testing.T, client *azservicebus.Client, name string, options *azservicebus.ListSessionsOptions) []string {
	t.Helper()
	var found []string
	for pager := client.NewListSessionsForQueuePager(name, options); pager.More(); {
		page, err := pager.NextPage(within(t, patience))
		must(t, err)
		found = append(found, page.Sessions...)
	}
	slices.Sort(found)
	return found
}
