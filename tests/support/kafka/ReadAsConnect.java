import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.debezium.transforms.ExtractNewRecordState;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * Records as a sink of Kafka Connect gets them: through JsonConverter, then ExtractNewRecordState.
 *
 * <p>Arguments: whether records carry schemas, then settings of ExtractNewRecordState, name=value.
 * Standard input: a record in a line, its key and its value in base64 with a blank between; a value
 * of "-" is a tombstone. Standard output: for each record a line of JSON with what the converter
 * made of it, with the names of the schemas, and what the transformation made of that; "dropped"
 * where it passes nothing on.
 */
public final class ReadAsConnect {
    private static final String TOPIC = "topic";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonConverter WRITER = converter(false, false);

    public static void main(String[] arguments) throws Exception {
        boolean schemas = Boolean.parseBoolean(arguments[0]);
        var settings = new HashMap<String, String>();
        for (int index = 1; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        JsonConverter keys = converter(schemas, true);
        JsonConverter values = converter(schemas, false);
        try (var transformation = new ExtractNewRecordState<SinkRecord>()) {
            transformation.configure(settings);
            var lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] fields = line.split(" ");
                SchemaAndValue key = keys.toConnectData(TOPIC, bytes(fields[0]));
                SchemaAndValue value = values.toConnectData(TOPIC, bytes(fields[1]));
                var read = new SinkRecord(
                        TOPIC, 0, key.schema(), key.value(), value.schema(), value.value(), 0);
                SinkRecord passed = transformation.apply(read);
                ObjectNode told = JSON.createObjectNode();
                told.set("read", described(read));
                told.set("passed", passed == null ? JSON.getNodeFactory().textNode("dropped")
                        : described(passed));
                System.out.println(JSON.writeValueAsString(told));
            }
        }
    }

    private static byte[] bytes(String field) {
        return field.equals("-") ? null : Base64.getDecoder().decode(field);
    }

    private static JsonConverter converter(boolean schemas, boolean isKey) {
        var converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", Boolean.toString(schemas)), isKey);
        return converter;
    }

    private static ObjectNode described(SinkRecord record) throws Exception {
        ObjectNode told = JSON.createObjectNode();
        told.set("key", plain(record.keySchema(), record.key()));
        told.set("value", plain(record.valueSchema(), record.value()));
        told.put("key_schema", name(record.keySchema()));
        told.put("value_schema", name(record.valueSchema()));
        ObjectNode headers = told.putObject("headers");
        for (var header : record.headers()) {
            headers.set(header.key(), plain(header.schema(), header.value()));
        }
        return told;
    }

    private static String name(Schema schema) {
        return schema == null ? null : schema.name();
    }

    private static JsonNode plain(Schema schema, Object value) throws Exception {
        byte[] written = WRITER.fromConnectData(TOPIC, schema, value);
        return written == null ? JSON.nullNode() : JSON.readTree(written);
    }
}
