/// Everything that reads bytes from outside, as functions that a fuzzer can call.
///
/// A target takes any bytes, checks what must hold for them, and traps when something does not. It has no state: the
/// same bytes always do the same. `Fuzz/run` feeds them from libFuzzer, the tests from `Fuzz/Corpus/<name>/`.
public enum FuzzTargets {
    /// Name (that of the corpus folder) and function.
    public static let all: [(name: String, run: @Sendable ([UInt8]) -> Void)] = [
        ("delta", fuzzDelta),
        ("json", fuzzJSON),
        ("json-number", fuzzJSONNumber),
        ("jsondiff-apply", fuzzJSONDiffApply),
        ("jsondiff-transform", fuzzJSONDiffTransform),
        ("text-diff", fuzzTextDiff),
        ("wire-client", fuzzWireClient),
        ("wire-server", fuzzWireServer),
        ("websocket", fuzzWebSocket),
        ("http-request", fuzzHTTPRequest),
        ("http-response", fuzzHTTPResponse),
        ("proxy-preface", fuzzProxyPreface),
        ("forwarded", fuzzForwarded),
        ("sealed-content", fuzzSealedContent),
        ("content-layout", fuzzContentLayout),
        ("rncryptor", fuzzRNCryptor),
        ("sealed-message", fuzzSealedMessage),
        ("key-wrap", fuzzKeyWrap),
        ("note-seal", fuzzNoteSeal),
        ("merkle-proof", fuzzMerkleProof),
        ("sparse-proof", fuzzSparseProof),
        ("recovery-words", fuzzRecoveryWords),
        ("secret-share", fuzzSecretShare),
        ("padding", fuzzPadding),
        ("names", fuzzNames),
        ("sealed-entity", fuzzSealedEntity),
        ("sealed-change", fuzzSealedChange),
        ("sealed-value", fuzzSealedValue),
        ("sealed-operation", fuzzSealedOperation),
        ("sealed-snapshot", fuzzSealedSnapshot),
        ("sealed-heads", fuzzSealedHeads),
        ("sealed-kept", fuzzSealedKept),
        ("account-bundle", fuzzAccountBundle),
        ("pairing-answer", fuzzPairingAnswer),
        ("typed-codes", fuzzTypedCodes),
        ("release", fuzzRelease),
        ("stored-note", fuzzStoredNote),
        ("typed-text", fuzzTypedText),
    ]
}
