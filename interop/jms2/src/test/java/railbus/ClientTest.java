package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** What needs no broker. */
class ClientTest {
    @Test
    void theConnectionStringNamesTheBroker() {
        assertEquals(
                "Endpoint=sb://127.0.0.1/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
                Client.connectionString("127.0.0.1"));
    }
}
