/*
 * The keyring as a KMS for Spark: parquet-java asks it to wrap and unwrap keys, and it answers from
 * the same JSON file that secure_bloom.keys reads.  A wrapped key is
 * base64(nonce 12 | ciphertext | tag 16), AES-GCM under the master key, AAD = UTF-8 of its id.
 *
 * The keyring's path is a Hadoop property, not kms.instance.url: parquet-java stores that one in
 * the footer of every file it writes.
 *
 * Compiled by Janino, so: raw types, no lambdas, no diamonds.
 */
package secure_bloom.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.ParquetCryptoRuntimeException;
import org.apache.parquet.crypto.keytools.KeyToolkit;
import org.apache.parquet.crypto.keytools.KmsClient;

public class SecureBloomKms implements KmsClient {

    public static final String KEYRING_PROPERTY = "secure_bloom.keyring";

    private String keyring;
    private final Map masterKeys = new HashMap();

    public void initialize(
            Configuration configuration, String instanceId, String instanceUrl, String accessToken) {
        keyring = configuration.getTrimmed(KEYRING_PROPERTY, "");
        if (keyring.isEmpty()) {
            throw new ParquetCryptoRuntimeException(
                    "no keyring: set spark.hadoop." + KEYRING_PROPERTY + " to the path of one");
        }
        readMasterKeys(readKeyring());
    }

    public String wrapKey(byte[] keyBytes, String masterKeyId) {
        return KeyToolkit.encryptKeyLocally(keyBytes, masterKey(masterKeyId), aad(masterKeyId));
    }

    public byte[] unwrapKey(String wrappedKey, String masterKeyId) {
        byte[] masterKey = masterKey(masterKeyId);
        try {
            return KeyToolkit.decryptKeyLocally(wrappedKey, masterKey, aad(masterKeyId));
        } catch (RuntimeException failure) {
            throw new ParquetCryptoRuntimeException(
                    "keyring " + keyring + ": master key " + masterKeyId + " does not unwrap this key: "
                            + "it was wrapped by another key, or altered", failure);
        }
    }

    private byte[] masterKey(String masterKeyId) {
        byte[] key = (byte[]) masterKeys.get(masterKeyId);
        if (key == null) {
            throw new KeyAccessDeniedException(
                    "keyring " + keyring + " holds no master key " + masterKeyId);
        }
        return key;
    }

    private static byte[] aad(String masterKeyId) {
        return masterKeyId.getBytes(StandardCharsets.UTF_8);
    }

    private JsonNode readKeyring() {
        try {
            JsonNode root = new ObjectMapper().readTree(Files.readAllBytes(new File(keyring).toPath()));
            if (((JsonNode) root.path("version")).asInt() != 1) {
                throw new ParquetCryptoRuntimeException(
                        "keyring " + keyring + ": \"version\" is not 1");
            }
            return root;
        } catch (JsonProcessingException failure) {
            // Neither its message nor the cause goes on: Jackson may quote the text, and so a key.
            throw new ParquetCryptoRuntimeException(
                    "keyring " + keyring + " is not JSON: line " + failure.getLocation().getLineNr());
        } catch (IOException failure) {
            throw new ParquetCryptoRuntimeException(
                    "keyring " + keyring + " cannot be read on this machine: " + failure, failure);
        }
    }

    private void readMasterKeys(JsonNode root) {
        JsonNode keys = (JsonNode) root.path("master_keys");
        Iterator ids = keys.fieldNames();
        while (ids.hasNext()) {
            String id = (String) ids.next();
            masterKeys.put(id, decodeMasterKey(id, ((JsonNode) keys.get(id)).asText()));
        }
    }

    private byte[] decodeMasterKey(String id, String base64) {
        byte[] key;
        try {
            key = Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException failure) {
            throw new ParquetCryptoRuntimeException(
                    "keyring " + keyring + ": master key " + id + " is not base64");
        }
        if (key.length != 16 && key.length != 24 && key.length != 32) {
            throw new ParquetCryptoRuntimeException(
                    "keyring " + keyring + ": master key " + id + " has " + key.length
                            + " bytes, it must have 16, 24 or 32");
        }
        return key;
    }
}
