import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// A file with an exported history, from any source.
public func fuzzSealedHistory(_ bytes: [UInt8]) {
    guard let json: JSONValue = try? .init(parsing: bytes, maxDepth: SealedLimits.clearDepthMax),
        let stored = StoredHistory(json), let keys = historyKeys,
        var history: SealedHistory = try? .init(keys: keys, serverKey: "aaaa")
    else { return }
    precondition(StoredHistory(stored.json) == stored, "what is written is read")
    for version in stored.versions { history.read(version.object, version: version.version) }
    precondition(history.states == stored.versions.count)
    // The file's author lacks the keys: nothing opens, and each state is reported.
    precondition(history.log == nil && history.findings.count >= history.states, "nothing passes unseen")
}

private let historyKeys: SealedBucketKeys? = {
    let secret = SecureBytes(copying: (0..<32).map { UInt8($0) })
    return try? .init(owner: "o", app: "a", bucket: "b", secrets: [0: secret])
}()
