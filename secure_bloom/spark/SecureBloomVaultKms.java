/*
 * Vault or OpenBao as a KMS for Spark: parquet-java wraps keys by `encrypt` of the transit engine and
 * unwraps them by `decrypt`.  A wrapped key is the engine's text, vault:vN:..., as it came, which is
 * also what secure_bloom.encryption.kms.vault writes and reads.
 *
 * Hadoop properties secure_bloom.vault.* say where the server is and how to log in.  They hold no
 * secret: tokens, role ids and secret ids come from files, or from the environment of the process
 * (VAULT_TOKEN, VAULT_ROLE_ID, VAULT_SECRET_ID or BAO_...), and go nowhere but to the server.
 *
 * Compiled by Janino, so: raw types, no lambdas, no diamonds.
 */
package secure_bloom.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Random;
import java.util.Set;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.crypto.keytools.KmsClient;

public class SecureBloomVaultKms implements KmsClient {

    private static final String PREFIX = "secure_bloom.vault.";
    private static final int TIMEOUT_MILLISECONDS = 10000;
    private static final int LONGEST_ANSWER = 1 << 20;
    private static final int LONGEST_TEXT = 200;
    private static final String NAME = "[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?";
    private static final String WRAPPED = "vault:v[1-9][0-9]{0,9}:[A-Za-z0-9+/]+={0,2}";
    // What a server should not repeat, and what is not shown if it does.
    private static final String SECRET =
            "\\b(?:hv[sbr]|[sbr])\\.\\S+|vault:v\\d+:\\S+|[A-Za-z0-9+/_]{40,}=*|[A-Za-z0-9+/]{20,}={1,2}";

    private final ObjectMapper json = new ObjectMapper();
    private final Random random = new Random();
    private final Set found = new HashSet();
    private Configuration configuration;
    private String address;
    private String mount;
    private String auth;
    private SSLSocketFactory sockets;

    private String token;
    // When the token is to be renewed, by System.nanoTime(); meaningless where it lives for ever.
    private long renewAt;
    private boolean isMortal;
    private boolean isRenewable;

    public void initialize(
            Configuration configuration, String instanceId, String instanceUrl, String accessToken) {
        // Instance and access token are not used: parquet-java stores the first in files, and takes
        // both from properties that Spark shows.
        this.configuration = configuration;
        address = setting("address");
        if (address == null) {
            throw new ParquetCryptoRuntimeException(
                    "no address: set spark.hadoop." + PREFIX + "address");
        }
        mount = setting("mount") == null ? "transit" : setting("mount");
        auth = setting("auth") == null ? "token" : setting("auth");
        checkTls();
        if (setting("ca_file") != null) {
            sockets = trusting(setting("ca_file"));
        }
    }

    public String wrapKey(byte[] keyBytes, String masterKeyId) {
        checkThere(masterKeyId);
        String plaintext = Base64.getEncoder().encodeToString(keyBytes);
        JsonNode data = transit("encrypt", masterKeyId, "plaintext", plaintext);
        String wrapped = ((JsonNode) data.path("ciphertext")).asText();
        if (!wrapped.matches(WRAPPED)) {
            throw strange("no ciphertext");
        }
        return wrapped;
    }

    public byte[] unwrapKey(String wrappedKey, String masterKeyId) {
        if (!wrappedKey.matches(WRAPPED)) {
            throw new ParquetCryptoRuntimeException(
                    "a wrapped key is not one of Vault or OpenBao, which begin with vault:v1: "
                            + "another KMS wrapped it");
        }
        JsonNode data = transit("decrypt", masterKeyId, "ciphertext", wrappedKey);
        byte[] key = null;
        try {
            key = Base64.getDecoder().decode(((JsonNode) data.path("plaintext")).asText());
        } catch (IllegalArgumentException failure) {
            // Not the cause: it could hold the key.
        }
        if (key == null || key.length == 0) {
            throw strange("no plaintext");
        }
        return key;
    }

    /* Encrypting under a name that is not there would make a key, so it is looked for first. */
    private synchronized void checkThere(String masterKeyId) {
        if (found.contains(masterKeyId)) {
            return;
        }
        JsonNode key = transit("keys", masterKeyId, null, null);
        if (((JsonNode) key.path("soft_deleted")).asBoolean()) {
            throw new KeyAccessDeniedException(
                    "master key " + masterKeyId + " of " + place() + " is deleted");
        }
        if (!((JsonNode) key.path("supports_encryption")).asBoolean()) {
            throw new KeyAccessDeniedException(
                    "master key " + masterKeyId + " of " + place()
                            + " does not encrypt: it is of another type");
        }
        found.add(masterKeyId);
    }

    private JsonNode transit(String verb, String masterKeyId, String field, String text) {
        // A name becomes part of a URL and may come from a file.
        if (!masterKeyId.matches(NAME)) {
            throw new KeyAccessDeniedException(
                    "a master key's name cannot be one of " + place()
                            + ": names have letters, digits, '_', '-' and '.'");
        }
        ObjectNode body = field == null ? null : json.createObjectNode();
        if (body != null) {
            body.put(field, text);
        }
        String path = mount + "/" + verb + "/" + masterKeyId;
        try {
            JsonNode data = (JsonNode) patiently(path, body).path("data");
            if (!data.isObject()) {
                throw strange("no data");
            }
            return data;
        } catch (Refusal refusal) {
            throw explained(refusal, verb, masterKeyId, path);
        }
    }

    private RuntimeException explained(
            Refusal refusal, String verb, String masterKeyId, String path) {
        String what = place() + ": " + path + ": " + refusal.getMessage();
        if (refusal.status == 404 && refusal.text.isEmpty()) {
            return new KeyAccessDeniedException(
                    place() + " has no master key " + masterKeyId + " at " + mount + "/");
        }
        if (refusal.status == 404) {
            return strange(refusal.getMessage());
        }
        if (refusal.status == 403) {
            return new KeyAccessDeniedException(
                    what + "; the token's policy needs " + (verb.equals("keys") ? "read" : "update")
                            + " on " + path);
        }
        if (refusal.text.contains("message authentication failed")
                || refusal.text.contains("invalid ciphertext")) {
            return new ParquetCryptoRuntimeException(
                    "master key " + masterKeyId + " of " + place() + " does not unwrap this key: "
                            + "it was wrapped by another key, or altered");
        }
        return new KeyAccessDeniedException(what);
    }

    // Requests

    private JsonNode patiently(String path, ObjectNode body) throws Refusal {
        long deadline = System.nanoTime() + retrySeconds() * 1000000000L;
        long limit = 100;
        while (true) {
            try {
                return withToken(path, body);
            } catch (Passing failure) {
                // A random part: what was throttled together must not come back together.
                long pause = failure.pause + limit / 4 + (long) (random.nextDouble() * limit * 3 / 4);
                if (System.nanoTime() + pause * 1000000L > deadline) {
                    throw new ParquetCryptoRuntimeException(
                            place() + " is not available: " + failure.getMessage());
                }
                sleep(pause);
                limit = Math.min(5000, limit * 2);
            }
        }
    }

    private JsonNode withToken(String path, ObjectNode body) throws Refusal, Passing {
        String used = validToken();
        try {
            return request(path, body, used);
        } catch (Refusal refusal) {
            if (refusal.status != 403 || isAccepted(used)) {
                throw refusal;
            }
            replace(used, refusal);
        }
        return request(path, body, validToken());
    }

    private JsonNode request(String path, ObjectNode body, String token) throws Refusal, Passing {
        int status;
        String text;
        String pause;
        try {
            HttpURLConnection connection =
                    (HttpURLConnection) new URL(address + "/v1/" + path).openConnection();
            if (sockets != null && connection instanceof HttpsURLConnection) {
                ((HttpsURLConnection) connection).setSSLSocketFactory(sockets);
            }
            // The token would go wherever a redirect leads.
            connection.setInstanceFollowRedirects(false);
            connection.setConnectTimeout(TIMEOUT_MILLISECONDS);
            connection.setReadTimeout(TIMEOUT_MILLISECONDS);
            connection.setRequestProperty("X-Vault-Request", "true");
            if (token != null) {
                connection.setRequestProperty("X-Vault-Token", token);
            }
            if (setting("namespace") != null) {
                connection.setRequestProperty("X-Vault-Namespace", setting("namespace"));
            }
            if (body != null) {
                connection.setRequestMethod("POST");
                connection.setDoOutput(true);
                connection.getOutputStream().write(json.writeValueAsBytes(body));
            }
            status = connection.getResponseCode();
            pause = connection.getHeaderField("Retry-After");
            text = read(status < 400 ? connection.getInputStream() : connection.getErrorStream());
        } catch (SSLException failure) {
            throw new ParquetCryptoRuntimeException(
                    "TLS of " + place() + " does not fit: " + failure.getMessage()
                            + "; ca_file of [kms] names the CA that signed its certificate");
        } catch (IOException failure) {
            throw new Passing("no connection: " + failure.getMessage(), 0);
        }
        return answered(status, text, pause);
    }

    private JsonNode answered(int status, String text, String pause) throws Refusal, Passing {
        JsonNode answer = null;
        try {
            answer = text.isEmpty() ? json.createObjectNode() : json.readTree(text);
        } catch (IOException failure) {
            // Not the cause: Jackson may quote the text.
        }
        JsonNode errors = answer == null ? null : (JsonNode) answer.path("errors");
        String told = errors == null || !errors.isArray() ? "" : shown(errors);
        if (status == 412 || status == 429 || status == 472 || status == 473 || status == 500
                || status == 502 || status == 503 || status == 504) {
            boolean isTold = pause != null && pause.matches("[0-9]{1,4}");
            throw new Passing(Refusal.message(status, told), isTold ? 1000 * Long.parseLong(pause) : 0);
        }
        if ((status == 200 || status == 204) && answer != null && answer.isObject()) {
            return answer;
        }
        if (status < 400 || errors == null || !errors.isArray()) {
            throw strange("HTTP " + status);
        }
        throw new Refusal(status, told);
    }

    private static String read(InputStream stream) throws IOException {
        if (stream == null) {
            return "";
        }
        try {
            ByteArrayOutputStream found = new ByteArrayOutputStream();
            byte[] buffer = new byte[8192];
            int count = stream.read(buffer);
            while (count >= 0 && found.size() < LONGEST_ANSWER) {
                found.write(buffer, 0, count);
                count = stream.read(buffer);
            }
            return new String(found.toByteArray(), StandardCharsets.UTF_8).trim();
        } finally {
            stream.close();
        }
    }

    private static String shown(JsonNode errors) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < errors.size(); i++) {
            text.append(i == 0 ? "" : "; ").append(((JsonNode) errors.get(i)).asText());
        }
        String safe = text.toString().replaceAll("\\s+", " ").replaceAll(SECRET, "...");
        safe = safe.replaceAll("\\p{Cntrl}", "?").trim();
        return safe.length() > LONGEST_TEXT ? safe.substring(0, LONGEST_TEXT) : safe;
    }

    // Tokens

    private synchronized String validToken() throws Passing {
        if (token == null) {
            logIn();
        } else if (isMortal && System.nanoTime() - renewAt >= 0) {
            renew();
        }
        return token;
    }

    /* Whether the server still knows the token: a 403 alone may be about the key. */
    private synchronized boolean isAccepted(String used) throws Passing {
        if (!used.equals(token)) {
            return false;
        }
        try {
            request("auth/token/lookup-self", null, used);
            return true;
        } catch (Refusal refusal) {
            return refusal.status != 403;
        }
    }

    private synchronized void replace(String used, Refusal refusal) throws Passing {
        if (!used.equals(token)) {
            return;
        }
        token = null;
        logIn();
        if (used.equals(token)) {
            token = null;
            throw refused(refusal);
        }
    }

    private void renew() throws Passing {
        String old = token;
        token = null;
        if (isRenewable) {
            try {
                JsonNode answer = request("auth/token/renew-self", json.createObjectNode(), old);
                take((JsonNode) answer.path("auth"), old);
                return;
            } catch (Refusal refusal) {
                // It has reached its greatest age: a new one.
            }
        }
        logIn();
    }

    private void logIn() throws Passing {
        ObjectNode body = json.createObjectNode();
        if (auth.equals("approle")) {
            body.put("role_id", identifier("ROLE_ID", "role_id_file"));
            body.put("secret_id", identifier("SECRET_ID", "secret_id_file"));
        } else if (auth.equals("kubernetes")) {
            body.put("role", setting("role"));
            body.put("jwt", secret(setting("jwt_file")));
        } else {
            useGivenToken();
            return;
        }
        String at = setting("auth_mount") == null ? auth : setting("auth_mount");
        try {
            take((JsonNode) request("auth/" + at + "/login", body, null).path("auth"), null);
        } catch (Refusal refusal) {
            throw refused(refusal);
        }
    }

    private void useGivenToken() throws Passing {
        String given = identifier("TOKEN", "token_file");
        JsonNode data = json.createObjectNode();
        try {
            data = (JsonNode) request("auth/token/lookup-self", null, given).path("data");
        } catch (Refusal refusal) {
            // A token without the default policy may not look itself up, and may do all else.
        }
        use(given, (JsonNode) data.path("ttl"), (JsonNode) data.path("renewable"));
    }

    private void take(JsonNode granted, String old) {
        String value = ((JsonNode) granted.path("client_token")).asText();
        if (value.isEmpty() && old == null) {
            throw strange("no token after a login");
        }
        use(value.isEmpty() ? old : value,
                (JsonNode) granted.path("lease_duration"), (JsonNode) granted.path("renewable"));
    }

    private void use(String value, JsonNode seconds, JsonNode renewable) {
        token = value;
        isMortal = seconds.asLong() > 0;
        renewAt = System.nanoTime() + seconds.asLong() * 1000000000L / 3 * 2;
        isRenewable = renewable.asBoolean();
    }

    private ParquetCryptoRuntimeException refused(Refusal refusal) {
        return new ParquetCryptoRuntimeException(
                place() + " refuses the login by " + auth + ": " + refusal.getMessage());
    }

    private String identifier(String name, String word) {
        if (setting(word) != null) {
            return secret(setting(word));
        }
        String value = System.getenv("VAULT_" + name);
        if (value == null || value.trim().isEmpty()) {
            value = System.getenv("BAO_" + name);
        }
        if (value == null || value.trim().isEmpty()) {
            throw new ParquetCryptoRuntimeException(
                    "there is no " + name.toLowerCase() + " for " + place() + " on this machine: set VAULT_"
                            + name + " or BAO_" + name + " in the environment of executors and driver, or "
                            + word + " in [kms]");
        }
        return value.trim();
    }

    /* Read anew for each login: agents and Kubernetes replace such files. */
    private static String secret(String file) {
        String value = "";
        try {
            value = new String(Files.readAllBytes(Paths.get(file, new String[0])), StandardCharsets.US_ASCII);
        } catch (IOException failure) {
            throw new ParquetCryptoRuntimeException(
                    file + " cannot be read on this machine: " + failure.getClass().getSimpleName());
        }
        value = value.trim();
        if (!value.matches("[\\x21-\\x7e]+")) {
            throw new ParquetCryptoRuntimeException(file + " is empty, or no line of text");
        }
        return value;
    }

    // Settings

    private String setting(String word) {
        String value = configuration.getTrimmed(PREFIX + word, "");
        return value.isEmpty() ? null : value;
    }

    private int retrySeconds() {
        return configuration.getInt(PREFIX + "retry_seconds", 30);
    }

    private String place() {
        URI uri = URI.create(address);
        return uri.getScheme() + "://" + uri.getAuthority();
    }

    private void checkTls() {
        URI uri = URI.create(address);
        String host = uri.getHost() == null ? "" : uri.getHost();
        boolean isHere = host.equals("localhost") || host.equals("[::1]")
                || host.matches("127(\\.[0-9]{1,3}){3}");
        if (!"https".equals(uri.getScheme()) && !isHere
                && !configuration.getBoolean(PREFIX + "allow_http", false)) {
            throw new ParquetCryptoRuntimeException(
                    place() + ": without TLS, tokens and keys cross the network in clear");
        }
    }

    private static SSLSocketFactory trusting(String caFile) {
        InputStream file = null;
        try {
            file = new FileInputStream(caFile);
            KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
            trusted.load(null, null);
            Collection certificates = CertificateFactory.getInstance("X.509").generateCertificates(file);
            Iterator each = certificates.iterator();
            for (int i = 0; each.hasNext(); i++) {
                trusted.setCertificateEntry("ca" + i, (Certificate) each.next());
            }
            TrustManagerFactory managers =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(trusted);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context.getSocketFactory();
        } catch (IOException failure) {
            throw new ParquetCryptoRuntimeException(
                    "the CA file " + caFile + " cannot be read on this machine", failure);
        } catch (GeneralSecurityException failure) {
            throw new ParquetCryptoRuntimeException("the CA file " + caFile + " does not serve", failure);
        } finally {
            closeQuietly(file);
        }
    }

    private static void closeQuietly(InputStream file) {
        try {
            if (file != null) {
                file.close();
            }
        } catch (IOException failure) {
            // All of it was read.
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException failure) {
            Thread.currentThread().interrupt();
            throw new ParquetCryptoRuntimeException("interrupted while waiting for the KMS");
        }
    }

    private ParquetCryptoRuntimeException strange(String what) {
        return new ParquetCryptoRuntimeException(
                "the answer of " + place() + " is not that of Vault or OpenBao: " + what
                        + "; check address, namespace and mount of [kms]");
    }

    /* The server's refusal of one request. */
    private static class Refusal extends Exception {
        final int status;
        final String text;

        Refusal(int status, String text) {
            super(message(status, text));
            this.status = status;
            this.text = text;
        }

        static String message(int status, String text) {
            return "HTTP " + status + (text.isEmpty() ? "" : ": " + text);
        }
    }

    /* A failure after which the same request may succeed; milliseconds that the server wants. */
    private static class Passing extends Exception {
        final long pause;

        Passing(String reason, long pause) {
            super(reason);
            this.pause = pause;
        }
    }
}
