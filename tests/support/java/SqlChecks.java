import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import io.vertx.core.parsetools.RecordParser;
import java.net.URI;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Talks to the SQL service as ksqlDB's Java client does: HTTP/2 with prior knowledge on Vert.x. {@code SqlChecks url} */
public final class SqlChecks {
    private static final String END = "the end of the response";
    private static HttpClient client;

    interface Check {
        void run() throws Exception;
    }

    public static void main(String[] arguments) {
        URI url = URI.create(arguments[0]);
        Vertx vertx = Vertx.vertx();
        client = vertx.createHttpClient(new HttpClientOptions()
                .setProtocolVersion(HttpVersion.HTTP_2)
                .setHttp2ClearTextUpgrade(false)
                .setDefaultHost(url.getHost())
                .setDefaultPort(url.getPort()));
        run("getsTheServersInfo", SqlChecks::getsTheServersInfo);
        run("carriesOutStatements", SqlChecks::carriesOutStatements);
        run("insertsRowsWhileItReadsAcks", SqlChecks::insertsRowsWhileItReadsAcks);
        run("insertsOneRow", SqlChecks::insertsOneRow);
        run("learnsWhyARowIsRefused", SqlChecks::learnsWhyARowIsRefused);
        run("readsRowsUntilItClosesTheQuery", SqlChecks::readsRowsUntilItClosesTheQuery);
        run("readsAsSlowlyAsItLikes", SqlChecks::readsAsSlowlyAsItLikes);
        run("getsAllRowsOfAPullQuery", SqlChecks::getsAllRowsOfAPullQuery);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void run(String name, Check check) {
        try {
            check.run();
            System.out.println("PASS " + name);
        } catch (Throwable failure) {
            System.out.println("FAIL " + name + ": " + failure);
            failure.printStackTrace(System.out);
        }
    }

    // ---- checks ----

    static void getsTheServersInfo() throws Exception {
        // The client sends a body even with GET.
        JsonObject info = new JsonObject(whole(HttpMethod.GET, "/info", new JsonObject(), 200));
        same(true, info.getJsonObject("KsqlServerInfo").getString("version").matches("\\d+\\.\\d+\\.\\d+"));
    }

    static void carriesOutStatements() throws Exception {
        JsonObject created = statement(
                "CREATE STREAM vertx (id STRING KEY, n INT) WITH (kafka_topic='vertx', partitions=1, value_format='JSON');");
        same("stream/`VERTX`/create", created.getString("commandId"));
        same("SUCCESS", created.getJsonObject("commandStatus").getString("status"));
        same("VERTX", statement("LIST STREAMS;").getJsonArray("streams").getJsonObject(0).getString("name"));
        JsonObject error = new JsonObject(whole(HttpMethod.POST, "/ksql", sql("SELECT FROM;"), 400));
        same(40001, error.getInteger("error_code"));
    }

    static void insertsRowsWhileItReadsAcks() throws Exception {
        HttpClientRequest request = get(client.request(HttpMethod.POST, "/inserts-stream"));
        Future<HttpClientResponse> response = request.response();
        get(request.sendHead());
        // The client writes each line as a frame of its own.
        request.writeCustomFrame(0, 0, Buffer.buffer("{\"target\":\"vertx\"}\n"));
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        response.onSuccess(found -> read(found, lines));
        for (int seq = 0; seq < 100; seq++) {
            request.writeCustomFrame(0, 0, new JsonObject().put("ID", "a").put("N", seq).toBuffer().appendString("\n"));
            same(new JsonObject().put("status", "ok").put("seq", seq), new JsonObject(next(lines)));
        }
        request.end();
        same(END, next(lines));
    }

    static void insertsOneRow() throws Exception {
        Buffer body = Buffer.buffer("{\"target\":\"vertx\"}\n{\"ID\":\"b\",\"N\":100}");
        BlockingQueue<String> lines = rows("/inserts-stream", body);
        same("ok", new JsonObject(next(lines)).getString("status"));
        same(END, next(lines));
    }

    static void learnsWhyARowIsRefused() throws Exception {
        BlockingQueue<String> lines = rows("/inserts-stream", Buffer.buffer("{\"target\":\"vertx\"}\n{\"N\":\"many\"}\n{\"N\":1}\n"));
        JsonObject refused = new JsonObject(next(lines));
        same("error", refused.getString("status"));
        same(40000, refused.getInteger("error_code"));
        same(END, next(lines));
    }

    static void readsRowsUntilItClosesTheQuery() throws Exception {
        BlockingQueue<String> lines = rows("/query-stream", query("SELECT id, n FROM vertx EMIT CHANGES;").toBuffer());
        JsonObject header = new JsonObject(next(lines));
        same(new JsonArray().add("ID").add("N"), header.getJsonArray("columnNames"));
        same(new JsonArray().add("STRING").add("INTEGER"), header.getJsonArray("columnTypes"));
        for (int n = 0; n < 101; n++) same(n, new JsonArray(next(lines)).getInteger(1));
        whole(HttpMethod.POST, "/close-query", new JsonObject().put("queryId", header.getString("queryId")), 200);
        same(END, next(lines));
    }

    static void readsAsSlowlyAsItLikes() throws Exception {
        HttpClientRequest request = get(client.request(HttpMethod.POST, "/query-stream"));
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        HttpClientResponse response = get(request.send(query("SELECT n FROM vertx EMIT CHANGES LIMIT 50;").toBuffer())
                .onSuccess(found -> {
                    read(found, lines);
                    found.pause();
                }));
        same(null, lines.poll(2, TimeUnit.SECONDS));
        response.resume();
        next(lines);
        for (int n = 0; n < 50; n++) same(n, new JsonArray(next(lines)).getInteger(0));
        same(END, next(lines));
    }

    static void getsAllRowsOfAPullQuery() throws Exception {
        BlockingQueue<String> lines = rows("/query-stream", query("SELECT * FROM vertx WHERE n >= 99;").toBuffer());
        next(lines);
        same(new JsonArray().add("a").add(99), new JsonArray(next(lines)));
        same(new JsonArray().add("b").add(100), new JsonArray(next(lines)));
        same(END, next(lines));
    }

    // ---- requests ----

    private static JsonObject statement(String text) throws Exception {
        JsonArray entities = new JsonArray(whole(HttpMethod.POST, "/ksql", sql(text), 200));
        same(1, entities.size());
        return entities.getJsonObject(0);
    }

    private static JsonObject sql(String text) {
        return new JsonObject().put("ksql", text).put("sessionVariables", new JsonObject());
    }

    private static JsonObject query(String text) {
        return new JsonObject()
                .put("sql", text)
                .put("properties", new JsonObject().put("auto.offset.reset", "earliest"))
                .put("sessionVariables", new JsonObject())
                .put("requestProperties", new JsonObject());
    }

    private static Buffer whole(HttpMethod method, String path, JsonObject body, int status) throws Exception {
        String expected = status + " HTTP_2 ";
        Future<Buffer> found = client.request(method, path)
                .compose(request -> request.send(body.toBuffer()))
                .compose(response -> response.body().map(whole ->
                        Buffer.buffer(response.statusCode() + " " + response.version() + " ").appendBuffer(whole)));
        String text = get(found).toString();
        if (!text.startsWith(expected)) throw new AssertionError(text);
        return Buffer.buffer(text.substring(expected.length()));
    }

    private static BlockingQueue<String> rows(String path, Buffer body) throws Exception {
        HttpClientRequest request = get(client.request(HttpMethod.POST, path));
        request.putHeader("Accept", "application/vnd.ksqlapi.delimited.v1");
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        request.response().onSuccess(response -> read(response, lines)).onFailure(error -> lines.add(error.toString()));
        request.end(body);
        return lines;
    }

    private static void read(HttpClientResponse response, BlockingQueue<String> lines) {
        RecordParser parser = RecordParser.newDelimited("\n", response);
        parser.handler(line -> lines.add(line.toString()));
        parser.endHandler(nothing -> lines.add(END));
        parser.exceptionHandler(error -> lines.add(error.toString()));
    }

    private static String next(BlockingQueue<String> lines) throws InterruptedException {
        String line = lines.poll(180, TimeUnit.SECONDS);
        if (line == null) throw new AssertionError("nothing came");
        return line;
    }

    private static <T> T get(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(180, TimeUnit.SECONDS);
    }

    private static void same(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + " but was " + actual);
    }
}
