package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;
import static railbus.WithoutKey.administration;
import static railbus.WithoutKey.builder;

import com.azure.core.credential.TokenCredential;
import com.azure.core.credential.TokenRequestContext;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.identity.ClientSecretCredential;
import com.azure.identity.ClientSecretCredentialBuilder;
import com.azure.identity.DefaultAzureCredential;
import com.azure.identity.DefaultAzureCredentialBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderAsyncClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationAsyncClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.microsoft.aad.msal4j.MsalServiceException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/**
 * Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
 * that {@code railbus identity env} prints, which {@code run} sets, and the clients take its tokens.
 * ClientSecretCredential gets them at its token endpoint.
 */
class IdentityTest {
    private static final int PORT = Integer.parseInt(System.getenv("RAILBUS_PORT"));

    private final DefaultAzureCredential credential = new DefaultAzureCredentialBuilder().build();

    @Test
    void aProgramWithoutAConnectionStringSendsAndReceives() {
        sendsAndReceives(credential);
    }

    private static void sendsAndReceives(TokenCredential credential) {
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderClient sender = builder(PORT, credential).sender().queueName(queue.name).buildClient();
            ServiceBusReceiverClient receiver = builder(PORT, credential).receiver().queueName(queue.name).buildClient()) {
            sender.sendMessage(message("without a key"));
            ServiceBusReceivedMessage received = Queue.receiveOne(receiver);
            assertEquals("without a key", received.getBody().toString());
            receiver.complete(received);
            assertEquals(0, queue.peek().size());
        }
    }

    @Test
    void anAsynchronousProgramWithoutAConnectionStringSendsAndReceives() {
        sendsAndReceivesAsynchronously(credential);
    }

    private static void sendsAndReceivesAsynchronously(TokenCredential credential) {
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderAsyncClient sender = asynchronousSender(credential, queue);
            ServiceBusReceiverAsyncClient receiver = asynchronousReceiver(credential, queue)) {
            sender.sendMessage(message("without a key")).block(Queue.PATIENCE);
            ServiceBusReceivedMessage received = receiver.receiveMessages()
                .concatMap(one -> receiver.renewMessageLock(one).then(receiver.complete(one)).thenReturn(one))
                .blockFirst(Queue.PATIENCE);
            assertEquals("without a key", received.getBody().toString());
            assertNull(receiver.peekMessage().block(Queue.PATIENCE));
        }
    }

    private static ServiceBusSenderAsyncClient asynchronousSender(TokenCredential credential, Queue queue) {
        return builder(PORT, credential).sender().queueName(queue.name).buildAsyncClient();
    }

    private static ServiceBusReceiverAsyncClient asynchronousReceiver(TokenCredential credential, Queue queue) {
        return builder(PORT, credential).receiver().queueName(queue.name).disableAutoComplete()
            .maxAutoLockRenewDuration(Duration.ZERO).buildAsyncClient();
    }

    /** The credential of a program whose authority is the broker. */
    private static ClientSecretCredential clientSecret(String secret) {
        return new ClientSecretCredentialBuilder()
            .authorityHost("https://" + System.getenv("RAILBUS_HOST") + ":" + PORT)
            .disableInstanceDiscovery()
            .tenantId("any-tenant")
            .clientId("any-client")
            .clientSecret(secret)
            .build();
    }

    @Test
    void clientCredentialsGetAToken() {
        sendsAndReceives(clientSecret("SAS_KEY_VALUE"));
        sendsAndReceivesAsynchronously(clientSecret("SAS_KEY_VALUE"));
    }

    @Test
    void aWrongSecretGetsNoToken() {
        TokenRequestContext context = new TokenRequestContext().addScopes("https://servicebus.azure.net/.default");
        ClientSecretCredential wrong = clientSecret("WRONG_KEY_VALUE");
        MsalServiceException refused =
            assertThrows(MsalServiceException.class, () -> wrong.getToken(context).block(Queue.PATIENCE));
        assertEquals(401, refused.statusCode());
        assertEquals("invalid_client", refused.errorCode());
    }

    /** Gets tokens for another service than Service Bus. */
    private TokenCredential forAnotherService() {
        return context -> credential.getToken(new TokenRequestContext().addScopes("https://vault.azure.net/.default"));
    }

    @Test
    void aTokenForAnotherServiceIsRefused() {
        TokenCredential other = forAnotherService();
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderClient sender = builder(PORT, other).sender().queueName(queue.name).buildClient()) {
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> sender.sendMessage(message("refused")));
            assertEquals(ServiceBusFailureReason.UNAUTHORIZED, refused.getReason());
            assertTrue(refused.getMessage().contains("InvalidAudience"), refused.getMessage());
            assertEquals(0, queue.peek().size());
        }
        assertThrows(ClientAuthenticationException.class, () -> administration(PORT, other).getQueue("java-plain"));
    }

    @Test
    void anAsynchronousProgramWithATokenForAnotherServiceIsRefused() {
        TokenCredential other = forAnotherService();
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderAsyncClient sender = asynchronousSender(other, queue);
            ServiceBusReceiverAsyncClient receiver = asynchronousReceiver(other, queue)) {
            for (Mono<?> refused : List.of(sender.sendMessage(message("refused")), receiver.receiveMessages().next())) {
                ServiceBusException error =
                    assertThrows(ServiceBusException.class, () -> refused.block(Queue.PATIENCE));
                assertEquals(ServiceBusFailureReason.UNAUTHORIZED, error.getReason());
                assertTrue(error.getMessage().contains("InvalidAudience"), error.getMessage());
            }
            assertEquals(0, queue.peek().size());
        }
        ServiceBusAdministrationAsyncClient admin = WithoutKey.administrationBuilder(PORT, other).buildAsyncClient();
        assertThrows(ClientAuthenticationException.class, () -> admin.getQueue("java-plain").block(Queue.PATIENCE));
    }

    @Test
    void anAsynchronousProgramWithoutAConnectionStringAdministers() {
        ServiceBusAdministrationAsyncClient admin = WithoutKey.administrationBuilder(PORT, credential).buildAsyncClient();
        String name = "java-identity-" + UUID.randomUUID().toString().substring(0, 13);
        String shown = admin.createQueue(name).then(admin.getQueue(name)).map(QueueProperties::getName)
            .flatMap(it -> admin.deleteQueue(it).thenReturn(it)).block(Queue.PATIENCE);
        assertEquals(name, shown);
    }

    @Test
    void aProgramWithoutAConnectionStringAdministers() {
        ServiceBusAdministrationClient admin = administration(PORT, credential);
        String name = "java-identity-" + UUID.randomUUID().toString().substring(0, 13);
        admin.createQueue(name);
        assertEquals(name, admin.getQueue(name).getName());
        admin.deleteQueue(name);
    }
}
