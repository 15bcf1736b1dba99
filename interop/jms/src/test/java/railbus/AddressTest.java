package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.Test;

class AddressTest {
    @Test
    void theClientTakesTheAddressAsItIs() {
        String address = Broker.address("localhost", "5672");
        assertEquals(address, new JmsConnectionFactory(address).getRemoteURI());
    }
}
