import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.utils.SecurityUtils;

/** Delegation tokens: created, used, renewed, expired, taken away. */
public final class DelegationTokenChecks {
    private static final String SHA_256 = "SCRAM-SHA-256", SHA_512 = "SCRAM-SHA-512";
    /**
     * Until it is deleted, Apache Kafka lets an expired token log in, and then closes the connection for the session that
     * has ended: its clients try until their time is up. Caudal says at the login what is wrong.
     */
    private static final Class<? extends Throwable> LATE =
        Secured.of("broker").equals("kafka") ? TimeoutException.class : SaslAuthenticationException.class;
    private static final Object[] IMPATIENT = {"default.api.timeout.ms", 4000, "request.timeout.ms", 2000};
    private static final Object[] ALICE = Secured.plain("LOGIN", "alice", "alice-secret");
    private static final Object[] BOB = Secured.plain("LOGIN", "bob", "bob-secret");

    private static DelegationToken create(CreateDelegationTokenOptions options, Object... login) throws Exception {
        try (Admin admin = Judge.admin(login)) {
            DelegationToken token = admin.createDelegationToken(options).delegationToken().get();
            Judge.eventually("the token is known", () -> admin.describeDelegationToken().delegationTokens().get().contains(token));
            return token;
        }
    }

    private static DelegationToken createForAlice() throws Exception {
        return create(new CreateDelegationTokenOptions().renewers(List.of(SecurityUtils.parseKafkaPrincipal("User:bob"))), ALICE);
    }

    private static Object[] use(DelegationToken token, String listener, String mechanism) {
        return Secured.token(listener, mechanism, token.tokenInfo().tokenId(), token.hmacAsBase64String());
    }

    private static void expire(DelegationToken token, long periodMs, Object... login) throws Exception {
        try (Admin admin = Judge.admin(login)) {
            admin.expireDelegationToken(token.hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(periodMs)).expiryTimestamp().get();
        }
    }

    public static void tokenLetsInAsItsOwner() throws Exception {
        DelegationToken token = createForAlice();
        Judge.same(new KafkaPrincipal("User", "alice"), token.tokenInfo().owner());
        for (String mechanism : List.of(SHA_256, SHA_512)) Secured.letsIn("alice", use(token, "LOGIN", mechanism));
    }

    public static void wrongTokensAreRefused() throws Exception {
        DelegationToken token = createForAlice(), another = createForAlice();
        String id = token.tokenInfo().tokenId(), hmac = token.hmacAsBase64String();
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
        for (Object[] login : List.of(
                Secured.token("LOGIN", SHA_512, id, another.hmacAsBase64String()),
                Secured.token("LOGIN", SHA_256, "unknown", hmac),
                Secured.scram("LOGIN", SHA_512, id, hmac),
                Secured.token("LOGIN", SHA_512, user, "right"))) {
            Secured.refuses(SaslAuthenticationException.class, login);
        }
    }

    public static void ownersAndRenewersRenewAToken() throws Exception {
        DelegationToken token = createForAlice();
        RenewDelegationTokenOptions hour = new RenewDelegationTokenOptions().renewTimePeriodMs(3_600_000);
        for (Object[] login : List.of(ALICE, BOB)) {
            try (Admin admin = Judge.admin(login)) {
                long before = System.currentTimeMillis();
                long until = admin.renewDelegationToken(token.hmac(), hour).expiryTimestamp().get();
                Judge.that(until >= before + 3_600_000 && until <= System.currentTimeMillis() + 3_600_000, "for an hour: " + until);
            }
        }
        Secured.letsIn("alice", use(token, "LOGIN", SHA_512));
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
        try (Admin admin = Judge.admin(Secured.scram("LOGIN", SHA_512, user, "right"))) {
            Judge.fails(DelegationTokenOwnerMismatchException.class, () -> admin.renewDelegationToken(token.hmac(), hour).expiryTimestamp().get());
            Judge.fails(DelegationTokenOwnerMismatchException.class, () -> admin.expireDelegationToken(token.hmac()).expiryTimestamp().get());
            Judge.fails(DelegationTokenNotFoundException.class, () -> admin.renewDelegationToken(new byte[64], hour).expiryTimestamp().get());
            Judge.same(List.of(), admin.describeDelegationToken().delegationTokens().get());
        }
    }

    public static void tokensAreShownToThoseWhomRulesAllow() throws Exception {
        DelegationToken token = createForAlice();
        String user = Secured.scramUser("right", ScramMechanism.SCRAM_SHA_512);
        try (Admin admin = Judge.admin(Secured.scram("LOGIN", SHA_512, user, "right"))) {
            Judge.same(List.of(), admin.describeDelegationToken().delegationTokens().get());
            Secured.allow(user, ResourceType.DELEGATION_TOKEN, token.tokenInfo().tokenId(), AclOperation.DESCRIBE);
            Judge.eventually("it is shown", () -> admin.describeDelegationToken().delegationTokens().get().equals(List.of(token)));
        }
        try (Admin bob = Judge.admin(BOB)) {
            Judge.that(bob.describeDelegationToken().delegationTokens().get().contains(token), "renewers see it");
        }
    }

    public static void tokenThatWasTakenAwayIsRefused() throws Exception {
        DelegationToken token = createForAlice();
        expire(token, -1, ALICE);
        Judge.eventually("it is refused", () -> !Secured.isLetIn(use(token, "LOGIN", SHA_256)));
        Secured.refuses(SaslAuthenticationException.class, use(token, "LOGIN", SHA_512));
        try (Admin admin = Judge.admin(ALICE)) {
            Judge.fails(DelegationTokenNotFoundException.class, () -> admin.renewDelegationToken(token.hmac()).expiryTimestamp().get());
        }
    }

    public static void tokenThatIsTakenAwayEndsAtTheNextLogin() throws Exception {
        DelegationToken token = createForAlice();
        Secured.endsWhen(use(token, "SESSIONS", SHA_512), () -> {
            expire(token, -1, ALICE);
            return null;
        });
    }

    public static void expiredTokenIsNotRenewed() throws Exception {
        DelegationToken token = create(new CreateDelegationTokenOptions().maxlifeTimeMs(1), ALICE);
        try (Admin admin = Judge.admin(ALICE)) {
            Judge.fails(DelegationTokenExpiredException.class, () -> admin.renewDelegationToken(token.hmac()).expiryTimestamp().get());
        }
    }

    public static void expiredTokenIsRefused() throws Exception {
        DelegationToken token = create(new CreateDelegationTokenOptions().maxlifeTimeMs(1), ALICE);
        isTooLate(use(token, "LOGIN", SHA_512));
    }

    public static void tokenThatExpiresEndsItsSession() throws Exception {
        DelegationToken token = create(new CreateDelegationTokenOptions().maxlifeTimeMs(3000), ALICE);
        Object[] login = use(token, "LOGIN", SHA_512);
        try (Admin admin = Judge.admin(Secured.with(login, IMPATIENT))) {
            Judge.same(1, admin.describeCluster().nodes().get().size());
            Judge.eventually("it ends", () -> Secured.thrownBy(() -> admin.describeCluster().nodes().get()) != null);
        }
        isTooLate(login);
    }

    private static void isTooLate(Object... login) {
        Judge.fails(LATE, () -> {
            try (Admin admin = Judge.admin(Secured.with(login, IMPATIENT))) {
                return admin.describeCluster().nodes().get();
            }
        });
    }

    public static void tokensAreGivenOnlyToThoseWhoLoggedInOtherwise() throws Exception {
        DelegationToken token = createForAlice();
        for (Object[] login : List.of(use(token, "LOGIN", SHA_512), new Object[0], Secured.certificate("AGED", null))) {
            try (Admin admin = Judge.admin(login)) {
                Judge.fails(UnsupportedByAuthenticationException.class, () -> admin.createDelegationToken().delegationToken().get());
                Judge.fails(UnsupportedByAuthenticationException.class, () -> admin.describeDelegationToken().delegationTokens().get());
            }
        }
        Object[] certificate = Secured.certificate("CERTIFICATES", Secured.of("stores") + "/billing.p12");
        Secured.letsIn("billing", use(create(new CreateDelegationTokenOptions(), certificate), "LOGIN", SHA_256));
    }
}
