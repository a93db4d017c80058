import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSealed

/// A file with an exported history, from whoever hands one in.
public func fuzzSealedHistory(_ bytes: [UInt8]) {
    guard let json: JSONValue = try? .init(parsing: bytes, maxDepth: SealedLimits.clearDepthMax),
        let stored: StoredHistory = .init(json), let keys: SealedBucketKeys = historyKeys,
        var history: SealedHistory = try? .init(keys: keys, serverKey: "aaaa")
    else { return }
    precondition(StoredHistory(stored.json) == stored, "what is written is read")
    for version: ObjectVersion in stored.versions { history.read(version.object, version: version.version) }
    precondition(history.states == stored.versions.count)
    // Nobody else has the keys: nothing opens, and that is told.
    precondition(history.log == nil && history.findings.count >= history.states, "nothing passes unseen")
}

private let historyKeys: SealedBucketKeys? = {
    let secret: SecureBytes = .init(copying: (0..<32).map { UInt8($0) })
    return try? .init(owner: "o", app: "a", bucket: "b", secrets: [0: secret])
}()
