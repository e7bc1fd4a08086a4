import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** The broker of {@code tests/support/every_login.py}, and how clients log in at it: as pairs of settings. */
final class Secured {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static final Properties WORLD = new Properties();

    static {
        try (Reader reader = Files.newBufferedReader(Paths.get(System.getProperty("world")))) {
            WORLD.load(reader);
        } catch (java.io.IOException problem) {
            throw new IllegalStateException(problem);
        }
    }

    static String of(String key) {
        return Objects.requireNonNull(WORLD.getProperty(key), key);
    }

    // ---- ways to log in ----

    static Object[] plain(String listener, String user, String password) {
        return login(listener, "PLAIN", "plain.PlainLoginModule required " + account(user, password));
    }

    static Object[] scram(String listener, String mechanism, String user, String password) {
        return login(listener, mechanism, "scram.ScramLoginModule required " + account(user, password));
    }

    static Object[] token(String listener, String mechanism, String id, String hmac) {
        return login(listener, mechanism, "scram.ScramLoginModule required " + account(id, hmac) + " tokenauth=\"true\"");
    }

    static Object[] bearer(String listener, Supplier<String> tokens) {
        String id = Judge.unique("tokens");
        Tokens.SOURCES.put(id, tokens);
        Object[] login = login(listener, "OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule required source=\"" + id + "\"");
        return with(login, "sasl.login.callback.handler.class", Tokens.class.getName(),
            "sasl.login.refresh.min.period.seconds", (short) 0, "sasl.login.refresh.buffer.seconds", (short) 0);
    }

    static Object[] certificate(String listener, String file) {
        Object[] settings = with(trusting("stores", "SSL"), "bootstrap.servers", of("at." + listener));
        return file == null ? settings : with(settings, "ssl.keystore.type", "PKCS12",
            "ssl.keystore.location", file, "ssl.keystore.password", of("password"), "ssl.key.password", of("password"));
    }

    static Object[] trusting(String authority, String protocol) {
        return new Object[] {"security.protocol", protocol, "ssl.truststore.type", "PEM",
            "ssl.truststore.location", of(authority) + "/authority.pem"};
    }

    private static Object[] login(String listener, String mechanism, String jaas) {
        String protocol = listener.equals("STRICT") ? "SASL_PLAINTEXT" : "SASL_SSL";
        return with(trusting("stores", protocol), "bootstrap.servers", of("at." + listener), "sasl.mechanism", mechanism,
            "sasl.jaas.config", MODULES + jaas + ";");
    }

    private static String account(String user, String password) {
        return "username=\"" + user + "\" password=\"" + password + "\"";
    }

    static Object[] with(Object[] settings, Object... more) {
        List<Object> all = new ArrayList<>(Arrays.asList(settings));
        all.addAll(Arrays.asList(more));
        return all.toArray();
    }

    // ---- what a client that is let in can do, and one that is not cannot ----

    /** Writes and reads, in a group, as a user whose rights are given here; and asks for the brokers. */
    static void letsIn(String user, Object... login) throws Exception {
        String topic = Judge.topic(1), group = Judge.unique("group");
        allow(user, ResourceType.TOPIC, topic, AclOperation.READ);
        allow(user, ResourceType.TOPIC, topic, AclOperation.WRITE);
        allow(user, ResourceType.GROUP, group, AclOperation.READ);
        try (KafkaProducer<String, String> producer = Judge.producer(login)) {
            Judge.send(producer, topic, 0, "a", "b");
        }
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = Judge.consumer(with(login, "group.id", group))) {
            consumer.subscribe(List.of(topic));
            Judge.eventually("the records come", () -> {
                consumer.poll(java.time.Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
                return found.size() == 2;
            });
            consumer.commitSync();
        }
        Judge.same(List.of("a", "b"), found);
        try (Admin admin = Judge.admin(login)) {
            Judge.same(Set.of(topic), describe(admin, new DescribeTopicsOptions(), topic).keySet());
            Judge.same(1, admin.describeCluster().nodes().get().size());
        }
    }

    /** Describes topics; from 3.1 the method of the result has another name. */
    @SuppressWarnings("unchecked")
    static Map<String, TopicDescription> describe(Admin admin, DescribeTopicsOptions options, String... topics) throws Exception {
        DescribeTopicsResult result = admin.describeTopics(List.of(topics), options);
        boolean isOld = Arrays.stream(DescribeTopicsResult.class.getMethods()).noneMatch(method -> method.getName().equals("allTopicNames"));
        Object all = DescribeTopicsResult.class.getMethod(isOld ? "all" : "allTopicNames").invoke(result);
        return ((org.apache.kafka.common.KafkaFuture<Map<String, TopicDescription>>) all).get();
    }

    /** All three kinds of clients fail with this exception, and long before their time is up. */
    static void refuses(Class<? extends Throwable> kind, Object... login) {
        long start = System.nanoTime();
        Judge.fails(kind, () -> {
            try (KafkaProducer<String, String> producer = Judge.producer(login)) {
                return producer.send(new ProducerRecord<>("refused", "value")).get();
            }
        });
        Judge.fails(kind, () -> {
            try (KafkaConsumer<String, String> consumer = Judge.consumer(login)) {
                return consumer.partitionsFor("refused");
            }
        });
        Judge.fails(kind, () -> {
            try (Admin admin = Judge.admin(login)) {
                return admin.describeCluster().nodes().get();
            }
        });
        Judge.that(System.nanoTime() - start < 40_000_000_000L, "they do not try again until their time is up");
    }

    /** Whether a client gets in now. */
    static boolean isLetIn(Object... login) throws InterruptedException {
        try (Admin admin = Judge.admin(login)) {
            return admin.describeCluster().nodes().get().size() == 1;
        } catch (java.util.concurrent.ExecutionException problem) {
            if (problem.getCause() instanceof AuthenticationException) return false;
            throw new AssertionError("it failed for another reason", problem);
        }
    }

    static AclBinding allow(String user, ResourceType type, String name, AclOperation operation) throws Exception {
        AclBinding binding = new AclBinding(new ResourcePattern(type, name, PatternType.LITERAL),
            new AccessControlEntry("User:" + user, "*", operation, AclPermissionType.ALLOW));
        try (Admin admin = Judge.admin()) {
            admin.createAcls(List.of(binding)).all().get();
            Judge.eventually("the rule is known", () -> !admin.describeAcls(binding.toFilter()).values().get().isEmpty());
        }
        return binding;
    }

    static void disallow(AclBinding binding) throws Exception {
        try (Admin admin = Judge.admin()) {
            Judge.same(1, admin.deleteAcls(List.of(binding.toFilter())).all().get().size());
        }
    }

    static String scramUser(String password, ScramMechanism... mechanisms) throws Exception {
        String user = Judge.unique("user");
        List<UserScramCredentialAlteration> changes = new ArrayList<>();
        try (Admin admin = Judge.admin()) {
            for (ScramMechanism mechanism : mechanisms) {
                ScramCredentialInfo info = new ScramCredentialInfo(mechanism, 4096);
                admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(user, info, password))).all().get();
                changes.add(new UserScramCredentialDeletion(user, mechanism));
            }
            Judge.eventually("the user is known", () -> admin.describeUserScramCredentials(List.of(user)).all().get()
                .get(user).credentialInfos().size() == changes.size());
        }
        return user;
    }

    /** Clients that were let in are refused after what is done to their user. */
    static void endsWhen(Object[] login, Callable<?> revocation) throws Exception {
        // A producer keeps its records and tries until their time is up; these two say at once what is wrong.
        try (Admin admin = Judge.admin(login); KafkaConsumer<String, String> consumer = Judge.consumer(login)) {
            Judge.same(1, admin.describeCluster().nodes().get().size());
            consumer.listTopics();
            revocation.call();
            Map<String, Callable<?>> calls = Map.of(
                "admin", () -> admin.describeCluster().nodes().get(), "consumer", consumer::listTopics);
            Map<String, Throwable> failures = new HashMap<>();
            Judge.eventually("both are refused", () -> {
                Thread.sleep(20);
                calls.forEach((name, call) -> failures.computeIfAbsent(name, ignored -> thrownBy(call)));
                return failures.size() == 2;
            });
            for (Throwable failure : failures.values()) Judge.fails(SaslAuthenticationException.class, () -> {
                throw new IllegalStateException(failure);
            });
        }
    }

    /** What the action throws; null if it succeeds. */
    static Throwable thrownBy(Callable<?> action) {
        try {
            action.call();
            return null;
        } catch (Exception problem) {
            return problem;
        }
    }

    // ---- tokens of an identity provider ----

    static Supplier<String> issuing(String user, int lifetimeSeconds) {
        return () -> issue("key1", user, of("issuer"), of("audience"), lifetimeSeconds);
    }

    static String issue(String key, String user, String issuer, String audience, int lifetimeSeconds) {
        long now = System.currentTimeMillis() / 1000;
        String claims = String.format("{\"sub\":\"%s\",\"iss\":\"%s\",\"aud\":\"%s\",\"iat\":%d,\"exp\":%d}",
            user, issuer, audience, Math.min(now, now + lifetimeSeconds - 1), now + lifetimeSeconds);
        String signed = encoded("{\"alg\":\"RS256\",\"kid\":\"" + key + "\"}") + "." + encoded(claims);
        try {
            byte[] secret = Base64.getDecoder().decode(of("key." + key));
            PrivateKey signing = KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(secret));
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(signing);
            signature.update(signed.getBytes(StandardCharsets.US_ASCII));
            return signed + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(signature.sign());
        } catch (java.security.GeneralSecurityException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static String encoded(String json) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(json.getBytes(StandardCharsets.UTF_8));
    }

    /** Gives a client a new token whenever it asks; what the token says of itself is for the broker to judge. */
    public static final class Tokens implements AuthenticateCallbackHandler {
        static final Map<String, Supplier<String>> SOURCES = new ConcurrentHashMap<>();
        private Supplier<String> source;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            source = SOURCES.get((String) entries.get(0).getOptions().get("source"));
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback) {
                    ((OAuthBearerTokenCallback) callback).token(new Issued(source.get()));
                } else if (!(callback instanceof SaslExtensionsCallback)) {
                    throw new UnsupportedCallbackException(callback);
                }
            }
        }

        @Override
        public void close() {}
    }

    private static final class Issued implements OAuthBearerToken {
        private final String value;
        private final long start = System.currentTimeMillis();
        private final long end;

        Issued(String value) {
            this.value = value;
            String claims = new String(Base64.getUrlDecoder().decode(value.split("\\.")[1]), StandardCharsets.UTF_8);
            long expires = 1000 * Long.parseLong(claims.replaceAll(".*\"exp\":(\\d+).*", "$1"));
            end = expires > start ? expires : start + 60_000; // what is too late is for the broker to find out
        }

        @Override
        public String value() {
            return value;
        }

        @Override
        public Set<String> scope() {
            return Collections.emptySet();
        }

        @Override
        public long lifetimeMs() {
            return end;
        }

        @Override
        public String principalName() {
            return "client";
        }

        @Override
        public Long startTimeMs() {
            return start;
        }
    }
}
