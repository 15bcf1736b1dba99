package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// administer makes a client that goes over HTTPS and trusts the broker's certificate authority.
func administer(t *testing.T, text string) *admin.Client {
	t.Helper()
	trusting := &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t)}}
	t.Cleanup(trusting.CloseIdleConnections)
	options := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: trusting}}
	client, err := admin.NewClientFromConnectionString(text, options)
	must(t, err)
	return client
}

// fresh is a name that no other test or run has used.
func fresh(what string) string {
	return fmt.Sprintf("%s-%s-%s", prefix, what, strings.ToLower(rand.Text()[:12]))
}

var access = admin.AuthorizationRule{
	AccessRights: []admin.AccessRight{admin.AccessRightManage, admin.AccessRightSend, admin.AccessRightListen},
	KeyName:      pointer("all"),
	PrimaryKey:   pointer("5DbsbZW1NbEDk2bCCuo8cIzGN1Pd8NTv6r2IoRVWJV0="),
	SecondaryKey: pointer("rgH8WyRMpHbhVNR3uBRR6pmmwLIyyhqr4cYPHmPfyDY="),
}

// untimed is the rules, which have no times: those are the client's, and this one sends none.
func untimed(t *testing.T, rules []admin.AuthorizationRule) []admin.AuthorizationRule {
	t.Helper()
	for _, rule := range rules {
		if rule.CreatedTime != nil || rule.ModifiedTime != nil {
			t.Fatalf("a rule with times: %v", rule)
		}
	}
	return rules
}

func TestEveryPropertyOfAQueueComesBack(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	name := fresh("queue")
	given := admin.QueueProperties{
		LockDuration:                        pointer("PT13S"),
		MaxSizeInMegabytes:                  pointer(int32(2048)),
		RequiresDuplicateDetection:          pointer(true),
		RequiresSession:                     pointer(true),
		DefaultMessageTimeToLive:            pointer("P1DT5S"),
		DeadLetteringOnMessageExpiration:    pointer(true),
		DuplicateDetectionHistoryTimeWindow: pointer("PT5M"),
		MaxDeliveryCount:                    pointer(int32(17)),
		EnableBatchedOperations:             pointer(false),
		Status:                              pointer(admin.EntityStatusActive),
		AutoDeleteOnIdle:                    pointer("PT1H"),
		EnablePartitioning:                  pointer(false),
		UserMetadata:                        pointer("a <b> & \"c\" ä"),
		AuthorizationRules:                  []admin.AuthorizationRule{access},
		MaxMessageSizeInKilobytes:           pointer(int64(2048)),
	}
	check := func(found admin.QueueProperties) {
		t.Helper()
		found.AuthorizationRules = untimed(t, found.AuthorizationRules)
		equal(t, "queue", found, given)
	}
	made, err := client.CreateQueue(ctx, name, &admin.CreateQueueOptions{Properties: &given})
	must(t, err)
	check(made.QueueProperties)
	found, err := client.GetQueue(ctx, name, nil)
	must(t, err)
	equal(t, "name", found.QueueName, name)
	check(found.QueueProperties)
	for _, change := range []func(){
		func() { given.LockDuration = pointer("PT14S") },
		func() { given.MaxSizeInMegabytes = pointer(int32(3072)) },
		func() { given.DefaultMessageTimeToLive = pointer("PT2H") },
		func() { given.DeadLetteringOnMessageExpiration = pointer(false) },
		func() { given.DuplicateDetectionHistoryTimeWindow = pointer("PT6M") },
		func() { given.MaxDeliveryCount = pointer(int32(18)) },
		func() { given.EnableBatchedOperations = pointer(true) },
		func() { given.Status = pointer(admin.EntityStatusSendDisabled) },
		func() { given.AutoDeleteOnIdle = pointer("PT2H") },
		func() { given.UserMetadata = pointer("other") },
		func() { given.MaxMessageSizeInKilobytes = pointer(int64(3072)) },
	} {
		change()
		updated, err := client.UpdateQueue(ctx, name, given, nil)
		must(t, err)
		check(updated.QueueProperties)
		found, err := client.GetQueue(ctx, name, nil)
		must(t, err)
		check(found.QueueProperties)
	}
	_, err = client.DeleteQueue(ctx, name, nil)
	must(t, err)
	found, err = client.GetQueue(ctx, name, nil)
	must(t, err)
	if found != nil {
		t.Fatalf("it is still there: %v", found)
	}
}

func TestAQueueForwardsAndDeadLettersToOthers(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	name, target := fresh("forward"), fresh("target")
	_, err := client.CreateQueue(ctx, target, nil)
	must(t, err)
	given := admin.QueueProperties{ForwardTo: &target, ForwardDeadLetteredMessagesTo: &target}
	_, err = client.CreateQueue(ctx, name, &admin.CreateQueueOptions{Properties: &given})
	must(t, err)
	found, err := client.GetQueue(ctx, name, nil)
	must(t, err)
	for _, shown := range []*string{found.ForwardTo, found.ForwardDeadLetteredMessagesTo} {
		if shown == nil || !strings.HasSuffix(*shown, target) {
			t.Fatalf("forwards to %v", shown)
		}
	}
	missing := fresh("missing")
	given = admin.QueueProperties{ForwardTo: &missing}
	_, err = client.CreateQueue(ctx, fresh("nowhere"), &admin.CreateQueueOptions{Properties: &given})
	refused(t, err, http.StatusNotFound)
	for _, gone := range []string{name, target} {
		_, err = client.DeleteQueue(ctx, gone, nil)
		must(t, err)
	}
}

func TestEveryPropertyOfATopicComesBack(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	name := fresh("topic")
	given := admin.TopicProperties{
		MaxSizeInMegabytes:                  pointer(int32(4096)),
		RequiresDuplicateDetection:          pointer(true),
		DefaultMessageTimeToLive:            pointer("PT1H"),
		DuplicateDetectionHistoryTimeWindow: pointer("PT5M"),
		EnableBatchedOperations:             pointer(false),
		Status:                              pointer(admin.EntityStatusActive),
		AutoDeleteOnIdle:                    pointer("PT1H"),
		EnablePartitioning:                  pointer(false),
		SupportOrdering:                     pointer(false),
		UserMetadata:                        pointer("mine"),
		AuthorizationRules:                  []admin.AuthorizationRule{access},
		MaxMessageSizeInKilobytes:           pointer(int64(2048)),
	}
	check := func(found admin.TopicProperties) {
		t.Helper()
		found.AuthorizationRules = untimed(t, found.AuthorizationRules)
		equal(t, "topic", found, given)
	}
	made, err := client.CreateTopic(ctx, name, &admin.CreateTopicOptions{Properties: &given})
	must(t, err)
	check(made.TopicProperties)
	for _, change := range []func(){
		func() { given.MaxSizeInMegabytes = pointer(int32(5120)) },
		func() { given.DefaultMessageTimeToLive = pointer("PT2H") },
		func() { given.DuplicateDetectionHistoryTimeWindow = pointer("PT6M") },
		func() { given.EnableBatchedOperations = pointer(true) },
		func() { given.Status = pointer(admin.EntityStatusDisabled) },
		func() { given.AutoDeleteOnIdle = pointer("PT2H") },
		func() { given.SupportOrdering = pointer(true) },
		func() { given.UserMetadata = pointer("yours") },
		func() { given.MaxMessageSizeInKilobytes = pointer(int64(3072)) },
	} {
		change()
		_, err := client.UpdateTopic(ctx, name, given, nil)
		must(t, err)
		found, err := client.GetTopic(ctx, name, nil)
		must(t, err)
		check(found.TopicProperties)
	}
	_, err = client.DeleteTopic(ctx, name, nil)
	must(t, err)
}

func TestEveryPropertyOfASubscriptionComesBack(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	topic, name, target := fresh("topic"), fresh("sub"), fresh("target")
	_, err := client.CreateTopic(ctx, topic, nil)
	must(t, err)
	_, err = client.CreateQueue(ctx, target, nil)
	must(t, err)
	given := admin.SubscriptionProperties{
		LockDuration:                                    pointer("PT20S"),
		RequiresSession:                                 pointer(true),
		DefaultMessageTimeToLive:                        pointer("PT1H"),
		DeadLetteringOnMessageExpiration:                pointer(true),
		EnableDeadLetteringOnFilterEvaluationExceptions: pointer(false),
		MaxDeliveryCount:                                pointer(int32(4)),
		Status:                                          pointer(admin.EntityStatusActive),
		AutoDeleteOnIdle:                                pointer("PT1H"),
		EnableBatchedOperations:                         pointer(false),
		UserMetadata:                                    pointer("mine"),
	}
	made, err := client.CreateSubscription(ctx, topic, name, &admin.CreateSubscriptionOptions{Properties: &given})
	must(t, err)
	equal(t, "subscription", made.SubscriptionProperties, given)
	for _, change := range []func(){
		func() { given.LockDuration = pointer("PT21S") },
		func() { given.DefaultMessageTimeToLive = pointer("PT2H") },
		func() { given.DeadLetteringOnMessageExpiration = pointer(false) },
		func() { given.EnableDeadLetteringOnFilterEvaluationExceptions = pointer(true) },
		func() { given.MaxDeliveryCount = pointer(int32(5)) },
		func() { given.AutoDeleteOnIdle = pointer("PT2H") },
		func() { given.EnableBatchedOperations = pointer(true) },
		func() { given.UserMetadata = pointer("yours") },
	} {
		change()
		_, err := client.UpdateSubscription(ctx, topic, name, given, nil)
		must(t, err)
		found, err := client.GetSubscription(ctx, topic, name, nil)
		must(t, err)
		equal(t, "subscription", found.SubscriptionProperties, given)
	}
	given.ForwardDeadLetteredMessagesTo = &target
	_, err = client.UpdateSubscription(ctx, topic, name, given, nil)
	must(t, err)
	found, err := client.GetSubscription(ctx, topic, name, nil)
	must(t, err)
	if shown := found.ForwardDeadLetteredMessagesTo; shown == nil || !strings.HasSuffix(*shown, target) {
		t.Fatalf("dead letters go to %v", shown)
	}
	_, err = client.DeleteTopic(ctx, topic, nil)
	must(t, err)
	_, err = client.DeleteQueue(ctx, target, nil)
	must(t, err)
}

func TestFiltersOfEveryKindComeBack(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	topic := fresh("rules")
	_, err := client.CreateTopic(ctx, topic, nil)
	must(t, err)
	_, err = client.CreateSubscription(ctx, topic, "s", nil)
	must(t, err)
	values := map[string]any{
		"@text": "blue & <red>", "@whole": int64(5), "@part": 2.5, "@yes": true,
		"@date": time.Date(2020, 7, 5, 11, 12, 13, 0, time.UTC),
	}
	filters := map[string]admin.RuleFilter{
		"true":       &admin.TrueFilter{},
		"false":      &admin.FalseFilter{},
		"sql":        &admin.SQLFilter{Expression: "n > 5 AND color = 'blue'"},
		"parameters": &admin.SQLFilter{Expression: "n > @whole", Parameters: values},
		"correlation": &admin.CorrelationFilter{
			ContentType: pointer("ct"), CorrelationID: pointer("c"), MessageID: pointer("m"), ReplyTo: pointer("r"),
			ReplyToSessionID: pointer("rs"), SessionID: pointer("s"), Subject: pointer("l"), To: pointer("t"),
			ApplicationProperties: values,
		},
	}
	names := []string{"$Default"}
	for name, filter := range filters {
		action := &admin.SQLAction{Expression: "SET a = @text", Parameters: map[string]any{"@text": "x"}}
		options := &admin.CreateRuleOptions{Name: &name, Filter: filter, Action: action}
		_, err := client.CreateRule(ctx, topic, "s", options)
		must(t, err)
		found, err := client.GetRule(ctx, topic, "s", name, nil)
		must(t, err)
		equal(t, name, found.Filter, filter)
		equal(t, name, found.Action, admin.RuleAction(action))
		names = append(names, name)
	}
	var listed []string
	pager := client.NewListRulesPager(topic, "s", &admin.ListRulesOptions{MaxPageSize: 2})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		must(t, err)
		for _, rule := range page.Rules {
			listed = append(listed, rule.Name)
		}
	}
	sort.Strings(names)
	equal(t, "rules", listed, names)
	changed := admin.RuleProperties{Name: "sql", Filter: &admin.SQLFilter{Expression: "n > 6"}}
	_, err = client.UpdateRule(ctx, topic, "s", changed)
	must(t, err)
	found, err := client.GetRule(ctx, topic, "s", "sql", nil)
	must(t, err)
	equal(t, "rule", found.RuleProperties, changed)
	_, err = client.DeleteRule(ctx, topic, "s", "sql", nil)
	must(t, err)
	bad := &admin.CreateRuleOptions{Name: pointer("bad"), Filter: &admin.SQLFilter{Expression: "n >"}}
	_, err = client.CreateRule(ctx, topic, "s", bad)
	refused(t, err, http.StatusBadRequest)
	_, err = client.DeleteTopic(ctx, topic, nil)
	must(t, err)
}

func TestListsHaveEveryNameOnce(t *testing.T) {
	ctx, client := within(t, 2*patience), administer(t, connectionString())
	wanted := map[string]int{}
	for range 120 {
		name := fresh("many")
		_, err := client.CreateQueue(ctx, name, nil)
		must(t, err)
		wanted[name] = 1
	}
	count := func(found map[string]int, name string) {
		if _, ours := wanted[name]; ours {
			found[name]++
		}
	}
	for _, size := range []int32{0, 7} {
		found := map[string]int{}
		pages(t, ctx, client.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: size}), func(page admin.ListQueuesResponse) {
			for _, queue := range page.Queues {
				count(found, queue.QueueName)
			}
		})
		equal(t, "names", found, wanted)
	}
	found := map[string]int{}
	pages(t, ctx, client.NewListQueuesRuntimePropertiesPager(nil), func(page admin.ListQueuesRuntimePropertiesResponse) {
		for _, queue := range page.QueueRuntimeProperties {
			count(found, queue.QueueName)
		}
	})
	equal(t, "names", found, wanted)
	for name := range wanted {
		_, err := client.DeleteQueue(ctx, name, nil)
		must(t, err)
	}
}

func pages[T any](t *testing.T, ctx context.Context, pager *runtime.Pager[T], each func(T)) {
	t.Helper()
	for pager.More() {
		page, err := pager.NextPage(ctx)
		must(t, err)
		each(page)
	}
}

func TestRuntimePropertiesAreThoseOfTheMoment(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	name, topic := fresh("queue"), fresh("topic")
	_, err := client.CreateQueue(ctx, name, nil)
	must(t, err)
	sender, err := connect(t, connectionString()).NewSender(name, nil)
	must(t, err)
	must(t, sender.SendMessage(ctx, message("one"), nil))
	found, err := client.GetQueueRuntimeProperties(ctx, name, nil)
	must(t, err)
	equal(t, "active", found.ActiveMessageCount, int32(1))
	equal(t, "all", found.TotalMessageCount, int64(1))
	_, err = client.CreateTopic(ctx, topic, nil)
	must(t, err)
	_, err = client.CreateSubscription(ctx, topic, "s", nil)
	must(t, err)
	ofTopic, err := client.GetTopicRuntimeProperties(ctx, topic, nil)
	must(t, err)
	equal(t, "subscriptions", ofTopic.SubscriptionCount, int32(1))
	ofSubscription, err := client.GetSubscriptionRuntimeProperties(ctx, topic, "s", nil)
	must(t, err)
	equal(t, "messages", ofSubscription.TotalMessageCount, int64(0))
	_, err = client.DeleteTopic(ctx, topic, nil)
	must(t, err)
	_, err = client.DeleteQueue(ctx, name, nil)
	must(t, err)
}

func TestOfManyWhoCreateTheSameOneSucceeds(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	name := fresh("race")
	outcomes := make([]int, 8)
	var all sync.WaitGroup
	for index := range outcomes {
		all.Go(func() {
			_, err := client.CreateQueue(ctx, name, nil)
			outcomes[index] = status(err)
		})
	}
	all.Wait()
	sort.Ints(outcomes)
	equal(t, "outcomes", outcomes, []int{0, 409, 409, 409, 409, 409, 409, 409})
	_, err := client.DeleteQueue(ctx, name, nil)
	must(t, err)
}

func TestWhatIsMissingOrWrongIsTheErrorForThat(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	missing := fresh("missing")
	found, err := client.GetTopic(ctx, missing, nil)
	must(t, err)
	if found != nil {
		t.Fatalf("it is there: %v", found)
	}
	_, err = client.DeleteQueue(ctx, missing, nil)
	refused(t, err, http.StatusNotFound)
	_, err = client.CreateSubscription(ctx, missing, "s", nil)
	refused(t, err, http.StatusNotFound)
	long := admin.QueueProperties{LockDuration: pointer("PT6M")}
	_, err = client.CreateQueue(ctx, missing, &admin.CreateQueueOptions{Properties: &long})
	refused(t, err, http.StatusBadRequest)
	wrong := administer(t, strings.Replace(connectionString(), "SAS_KEY_VALUE", "WRONG_KEY_VALUE", 1))
	_, err = wrong.GetNamespaceProperties(ctx, nil)
	refused(t, err, http.StatusUnauthorized)
}

func TestAQueueIsCreatedUsedAndListedUnderItsName(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	var wanted []string
	for _, pattern := range []string{"a~b*", "-*-", "_*_", ".*.", "*--", "*__", "A*z", "a/b*/c-", "-a-/_*_/.c."} {
		name := strings.Replace(pattern, "*", rand.Text(), 1)
		_, err := client.CreateQueue(ctx, name, nil)
		must(t, err)
		found, err := client.GetQueue(ctx, name, nil)
		must(t, err)
		equal(t, "name", found.QueueName, name)
		wanted = append(wanted, name)
		q := queue{t, connect(t, connectionString()), name}
		q.send(message("body"))
		q.take(1)
	}
	sort.Strings(wanted)
	equal(t, "names", listedQueues(t, ctx, client, wanted), wanted)
	for _, name := range wanted {
		_, err := client.DeleteQueue(ctx, name, nil)
		must(t, err)
	}
}

// listedQueues gives those of the names that the list of queues has, in order.
func listedQueues(t *testing.T, ctx context.Context, client *admin.Client, names []string) []string {
	t.Helper()
	var found []string
	pages(t, ctx, client.NewListQueuesPager(nil), func(page admin.ListQueuesResponse) {
		for _, queue := range page.Queues {
			if slices.Contains(names, queue.QueueName) {
				found = append(found, queue.QueueName)
			}
		}
	})
	sort.Strings(found)
	return found
}

func TestASubscriptionAndItsRuleHaveTheirNames(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	topic := "-" + fresh("topic") + "_"
	_, err := client.CreateTopic(ctx, topic, nil)
	must(t, err)
	sender := queue{t, connect(t, connectionString()), topic}
	rules := map[string]string{"-s-": "-r-", "_s_": "_r_", ".s.": ".r.", "a~b": "r--", "s--": "r__"}
	for subscription, rule := range rules {
		_, err := client.CreateSubscription(ctx, topic, subscription, nil)
		must(t, err)
		_, err = client.CreateRule(ctx, topic, subscription, &admin.CreateRuleOptions{Name: &rule})
		must(t, err)
		found, err := client.GetRule(ctx, topic, subscription, rule, nil)
		must(t, err)
		equal(t, "rule", found.Name, rule)
		sender.send(message(subscription))
		receiver, err := sender.client.NewReceiverForSubscription(topic, subscription, receiveAndDelete)
		must(t, err)
		equal(t, "body", string(receiveOne(t, receiver).Body), subscription)
	}
	_, err = client.DeleteTopic(ctx, topic, nil)
	must(t, err)
}

func TestACharacterThatIsNotAllowedIsRefused(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	for _, name := range []string{"a!b", "a b", "ä", "a$b", "a,b", "a//b"} {
		_, err := client.CreateQueue(ctx, name, nil)
		refused(t, err, http.StatusBadRequest)
		if !strings.Contains(err.Error(), "contains character(s) that is not allowed by Service Bus.") {
			t.Fatalf("%s: got error %v", name, err)
		}
	}
}

func TestALoneNameOfTheSystemThatIsNoneIsNotFound(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	const name = "$nothing"
	found, err := client.GetQueue(ctx, name, nil)
	must(t, err)
	foundTopic, err := client.GetTopic(ctx, name, nil)
	must(t, err)
	if found != nil || foundTopic != nil {
		t.Fatalf("it is there: %v %v", found, foundTopic)
	}
	_, err = client.CreateQueue(ctx, name, nil)
	refused(t, err, http.StatusBadRequest)
}

func TestTheNamespaceSaysWhatItIs(t *testing.T) {
	ctx, client := within(t, patience), administer(t, connectionString())
	found, err := client.GetNamespaceProperties(ctx, nil)
	must(t, err)
	equal(t, "tier", found.SKU, "Premium")
	if found.Name == "" {
		t.Fatal("it has no name")
	}
}

// status is the code of a response that was an error, 0 without an error.
func status(err error) int {
	var response *azcore.ResponseError
	if errors.As(err, &response) {
		return response.StatusCode
	}
	if err != nil {
		return -1
	}
	return 0
}

func refused(t *testing.T, err error, code int) {
	t.Helper()
	if status(err) != code {
		t.Fatalf("got %v, want status %d", err, code)
	}
}
