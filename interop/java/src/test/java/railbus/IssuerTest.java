package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Provider.but;
import static railbus.Queue.eventually;
import static railbus.Queue.message;

import com.azure.core.amqp.AmqpTransportType;
import com.azure.core.credential.TokenCredential;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Programs with tokens of a configured issuer: a provider of OpenID Connect, as in production. A token has the rights
 * that the broker's grants give to its claims. What is refused leaves everything as it was. The broker's authority is
 * one that {@code run} has made. (docs/spec/amqp.md#2.8, docs/spec/admin.md#2.3)
 */
class IssuerTest {
    /** The issuer whose keys are in a file. It has the usual audience and the usual grants. */
    private static final String FILE_ISSUER = "https://keys.example";
    private static final String USUAL_AUDIENCE = "https://servicebus.azure.net";
    private static final String ORDERS = "orders";

    private static final Map<String, Object> WRITER = Map.of("roles", List.of("Orders.Write"));
    private static final Map<String, Object> READER = Map.of("scp", "openid orders.read");
    private static final Map<String, Object> OPERATOR = Map.of("groups", List.of("everyone", "operators"));
    private static final Map<String, Object> WORKER = Map.of("sub", "worker");
    private static final Map<String, Map<String, Object>> CLAIMANTS = Map.of(
        "writer", WRITER,
        "reader", READER,
        "owner by Azure's name", Map.of("roles", List.of("Azure Service Bus Data Owner")),
        "subject as a role", Map.of("roles", List.of("worker")),
        "nobody", Map.of());

    private final Provider provider = new Provider();
    private final Provider.Key first = Provider.Key.rsa("in-the-file");
    @TempDir
    private Path directory;
    private VirtualBroker broker;
    private int port;

    IssuerTest() throws IOException {
    }

    @BeforeEach
    void start() throws IOException {
        writeKeys(first);
        String template = Files.readString(Path.of(System.getProperty("basedir"), "..", "issuers.toml"));
        Path settings = directory.resolve("railbus.toml");
        Files.writeString(settings, template.replace("ISSUER", provider.issuer).replace("KEYS_FILE", file().toString()));
        broker = new VirtualBroker("clock.json", "--config", settings.toString(),
            "--tls-dir", System.getenv("OWN_BROKER_TLS"));
        port = broker.uri("/").getPort();
    }

    @AfterEach
    void stop() {
        broker.close();
        provider.close();
    }

    private Path file() {
        return directory.resolve("keys.json");
    }

    /** Replaces the file as a whole, so that it is never read half written. */
    private void writeKeys(Provider.Key... keys) throws IOException {
        Path written = Files.writeString(directory.resolve("keys.new"), Provider.keySet(keys));
        Files.move(written, file(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private Queue queue(TokenCredential credential) {
        return queue(ORDERS, credential);
    }

    private Queue queue(String name, TokenCredential credential) {
        return new Queue(name, () -> WithoutKey.builder(port, credential));
    }

    private ServiceBusAdministrationClient administration(TokenCredential credential) {
        return WithoutKey.administration(port, credential);
    }

    private void sendUntouched() {
        try (Queue orders = queue(provider.credential(OPERATOR))) {
            orders.send(message("untouched"));
        }
    }

    private void assertUntouched() {
        try (Queue orders = queue(provider.credential(OPERATOR))) {
            List<ServiceBusReceivedMessage> left = orders.peek();
            assertEquals(1, left.size());
            assertEquals("untouched", left.get(0).getBody().toString());
            assertEquals(0, left.get(0).getDeliveryCount());
        }
    }

    /** What a user does with a queue, by its name. */
    private static Consumer<Queue> operation(String name) {
        return RefusalTest.operations().filter(one -> one.getName().equals(name)).map(Named::getPayload)
            .findAny().orElseThrow();
    }

    @ParameterizedTest
    @CsvSource({"RS256,AMQP", "RS256,AMQP_WEB_SOCKETS", "ES256,AMQP", "ES256,AMQP_WEB_SOCKETS"})
    void programsWithTokensOfAProviderSendAndReceive(String algorithm, AmqpTransportType transport) {
        try (ServiceBusSenderClient sender = WithoutKey.builder(port, provider.credential(algorithm, WRITER))
                .transportType(transport).sender().queueName(ORDERS).buildClient();
            ServiceBusReceiverClient receiver = WithoutKey.builder(port, provider.credential(algorithm, READER))
                .transportType(transport).receiver().queueName(ORDERS).buildClient();
            Queue orders = queue(provider.credential(OPERATOR))) {
            sender.sendMessage(message("by a token"));
            ServiceBusReceivedMessage received = Queue.receiveOne(receiver);
            assertEquals("by a token", received.getBody().toString());
            receiver.renewMessageLock(received);
            receiver.complete(received);
            orders.assertEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {ORDERS, "target"})
    void aSubjectHasItsRightsInEveryQueue(String name) {
        try (Queue queue = queue(name, provider.credential(WORKER))) {
            queue.send(message("by a token"));
            assertEquals("by a token", queue.take(1).get(0).getBody().toString());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "writer,receive,orders",
        "writer,peek,orders",
        "reader,send,orders",
        "writer,send,target",
        "reader,receive,target",
        "owner by Azure's name,send,orders",
        "subject as a role,receive,orders",
        "nobody,send,orders",
    })
    void aTokenHasNoRightBesideItsGrants(String claimant, String operation, String name) {
        sendUntouched();
        try (Queue queue = queue(name, provider.credential(CLAIMANTS.get(claimant)))) {
            RefusalTest.assertRefused(ServiceBusFailureReason.UNAUTHORIZED, operation(operation), queue);
        }
        assertUntouched();
    }

    /** That of an operator, but for what its name says. */
    private TokenCredential bad(String name) {
        Provider.Key key = provider.keys.get("RS256");
        String issuer = provider.issuer;
        long now = Instant.now().getEpochSecond();
        return switch (name) {
            case "unknown issuer" -> new Provider.Credential(key::token, "https://evil.example", OPERATOR);
            case "another key of that name" ->
                new Provider.Credential(Provider.Key.rsa("first")::token, issuer, OPERATOR);
            case "key of another issuer" ->
                new Provider.Credential(key::token, FILE_ISSUER, Map.of("roles", List.of("Manage")));
            case "wrong audience" -> provider.credential(but(OPERATOR, "aud", USUAL_AUDIENCE));
            case "expired" -> provider.credential(but(OPERATOR, "exp", now - 600));
            case "not yet" -> provider.credential(but(OPERATOR, "nbf", now + 600));
            case "unsigned" -> new Provider.Credential(Provider::unsigned, issuer, OPERATOR);
            case "no JWT" -> new Provider.Credential(claims -> "an-opaque-token", issuer, OPERATOR);
            default -> throw new IllegalArgumentException(name);
        };
    }

    @ParameterizedTest
    @CsvSource({
        "unknown issuer,IssuerNotFound,40109",
        "another key of that name,InvalidSignature,40103",
        "key of another issuer,InvalidSignature,40103",
        "wrong audience,InvalidAudience,40104",
        "expired,ExpiredToken,40106",
        "not yet,InvalidToken,40100",
        "unsigned,MalformedToken,40105",
        "no JWT,MalformedToken,40105",
    })
    void aTokenThatIsNotGoodIsRefusedAndNothingChanges(String name, String text, int subCode) {
        sendUntouched();
        RefusalTest.operations().forEach(operation -> {
            try (Queue orders = queue(bad(name))) {
                ServiceBusException refused = RefusalTest.assertRefused(
                    ServiceBusFailureReason.UNAUTHORIZED, operation.getPayload(), orders);
                assertTrue(refused.getMessage().contains(text), refused.getMessage());
            }
        });
        assertAdministersNothing(bad(name), "SubCode=" + subCode + ". " + text);
        assertUntouched();
    }

    private void assertAdministersNothing(TokenCredential credential, String text) {
        ServiceBusAdministrationClient refused = administration(credential);
        for (Executable operation : List.<Executable>of(
            () -> refused.createQueue("denied"),
            () -> refused.getQueue(ORDERS),
            () -> refused.deleteQueue(ORDERS))) {
            String told = assertThrows(ClientAuthenticationException.class, operation).getMessage();
            assertTrue(told.contains(text), told);
        }
        ServiceBusAdministrationClient manager = administration(provider.credential(OPERATOR));
        assertFalse(manager.getQueueExists("denied"));
        assertTrue(manager.getQueueExists(ORDERS));
    }

    @Test
    void aTokenWithoutManageAdministersNothing() {
        assertAdministersNothing(provider.credential(WORKER), "Manage");
    }

    @ParameterizedTest
    @ValueSource(strings = {"RS256", "ES256"})
    void aProgramWithATokenOfAProviderAdministers(String algorithm) {
        ServiceBusAdministrationClient admin = administration(provider.credential(algorithm, OPERATOR));
        admin.createQueue("by-a-token", new CreateQueueOptions().setMaxDeliveryCount(7));
        QueueProperties queue = admin.getQueue("by-a-token");
        admin.updateQueue(queue.setMaxDeliveryCount(8));
        assertEquals(8, admin.getQueue("by-a-token").getMaxDeliveryCount());
        admin.createTopic("events-by-a-token");
        admin.createSubscription("events-by-a-token", "all");
        assertTrue(admin.getSubscriptionExists("events-by-a-token", "all"));
        admin.deleteTopic("events-by-a-token");
        admin.deleteQueue("by-a-token");
        assertFalse(admin.getQueueExists("by-a-token"));
    }

    /** Whether a send is refused for the signature of its token. */
    private boolean isRefused(Provider.Key key) {
        Map<String, Object> claims = Map.of("roles", List.of("Azure Service Bus Data Sender"), "aud", USUAL_AUDIENCE);
        try (Queue orders = queue(new Provider.Credential(key::token, FILE_ISSUER, claims))) {
            orders.send(message("body"));
            return false;
        } catch (ServiceBusException failure) {
            // A link that stands when its key is withdrawn is detached, which is another refusal.
            return failure.getMessage().contains("InvalidSignature");
        }
    }

    @Test
    void keysAreRotatedWithoutARestart() throws IOException {
        Provider.Key second = Provider.Key.rsa("its-successor");
        try (Queue kept = queue(provider.credential(WORKER))) {
            ServiceBusSenderClient bystander = kept.sender();
            bystander.sendMessage(message("before"));
            assertFalse(isRefused(first));
            assertTrue(isRefused(second));
            writeKeys(first, second);
            eventually("the new key", () -> !isRefused(second));
            assertFalse(isRefused(first));
            writeKeys(second);
            eventually("the end of the old key", () -> isRefused(first));
            assertFalse(isRefused(second));
            // Links with tokens of other keys are kept.
            bystander.sendMessage(message("after"));
        }
    }

    @Test
    void theDevelopmentKeyIsNotValidBesideAnIssuer() {
        String key = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;";
        assertFalse(broker.connectionString.contains("SharedAccessKey"));
        String text = broker.connectionString.replace("UseDevelopmentEmulator", key + "UseDevelopmentEmulator");
        RefusalTest.operations().forEach(operation -> {
            try (Queue orders = new Queue(ORDERS, text)) {
                RefusalTest.assertRefused(ServiceBusFailureReason.UNAUTHORIZED, operation.getPayload(), orders);
            }
        });
        try (Queue orders = queue(provider.credential(OPERATOR))) {
            orders.assertEmpty();
        }
    }
}
