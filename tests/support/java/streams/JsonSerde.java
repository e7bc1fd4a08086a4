import java.io.IOException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Values as JSON. */
public final class JsonSerde implements Serde<JsonNode> {
    private static final ObjectMapper JSON = new ObjectMapper();

    @Override
    public Serializer<JsonNode> serializer() {
        return (topic, value) -> {
            try {
                return value == null ? null : JSON.writeValueAsBytes(value);
            } catch (IOException error) {
                throw new SerializationException(error);
            }
        };
    }

    @Override
    public Deserializer<JsonNode> deserializer() {
        return (topic, data) -> {
            try {
                return data == null ? null : JSON.readTree(data);
            } catch (IOException error) {
                throw new SerializationException(error);
            }
        };
    }
}
