package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
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
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.microsoft.aad.msal4j.MsalServiceException;
import java.util.UUID;
import org.junit.jupiter.api.Test;

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

    @Test
    void aTokenForAnotherServiceIsRefused() {
        TokenCredential other = context ->
            credential.getToken(new TokenRequestContext().addScopes("https://vault.azure.net/.default"));
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
    void aProgramWithoutAConnectionStringAdministers() {
        ServiceBusAdministrationClient admin = administration(PORT, credential);
        String name = "java-identity-" + UUID.randomUUID().toString().substring(0, 13);
        admin.createQueue(name);
        assertEquals(name, admin.getQueue(name).getName());
        admin.deleteQueue(name);
    }
}
