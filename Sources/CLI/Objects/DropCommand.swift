import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket drop`: drops edits that the server does not have.
enum DropCommand {
    static func run(_ call: Call) async throws(Failure) {
        try await drop(call, call.argument("BUCKET"), call.arguments("KEY"))
    }

    /// Drops the edits of each object, and prints the object that they had made.
    ///
    /// The copy is first used offline: a connection would send the edits. The server is asked only for edits that were
    /// sent and whose answer is not stored (401, or no answer yet).
    static func drop(_ call: Call, _ name: String, _ keys: [String]) async throws(Failure) {
        for key in keys { try Keys.check(key) }
        let account = try Account(call)
        guard account.folder != nil else {
            throw Failure(
                "edits are kept for a profile only, and this account is given by settings: there is nothing to drop",
                .usage)
        }
        let open = try await OpenBucket.open(account, bucket: name, store: .profileOnly, isOnline: false)
        var sent = [String]()
        var missing = [String]()
        for key in keys where try await !isDropped(key, open) {
            let info = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
                try await open.bucket.info(key)
            }
            if info.hasUnconfirmedEdits { sent.append(key) } else { missing.append(key) }
        }
        if !sent.isEmpty {
            await open.session.goOnline()
            try await open.ready("edits of \(sent.joined(separator: ", ")) may be on their way and are not given up")
            for key in sent where try await !isDropped(key, open) { missing.append(key) }
        }
        await open.close()
        guard missing.isEmpty else {
            throw Failure(
                "nothing to drop at \(missing.map { "\(name)/\($0)" }.joined(separator: ", ")): there is no edit that the "
                    + "server does not have", .notFound)
        }
    }

    /// - Returns: false when the object has no edit that may be dropped.
    private static func isDropped(_ key: String, _ open: OpenBucket) async throws(Failure) -> Bool {
        let what = "cannot drop the edit of \(open.name)/\(key)"
        let isUnsent = try await trying(what) { () throws(ClientError) in try await open.bucket.isUnsent(key) }
        guard isUnsent else { return false }
        let object = try await trying(what) { () throws(ClientError) in try await open.bucket.get(key) }
        if let object {
            // Printed before it is dropped: no other copy exists.
            let line = JSONValue.object(object).serializedText + "\n"
            guard Terminal.write(Terminal.isTerminal(Terminal.standardOutput) ? Screen.safe(line) : line) else {
                throw Failure("the object could not be printed: its edit was not dropped")
            }
        }
        let isDone = try await trying(what) { () throws(ClientError) in try await open.bucket.discardUnsent(key) }
        guard isDone else { return false }
        let version = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version
        }
        let isThere = try await trying(what) { () throws(ClientError) in try await open.bucket.get(key) != nil }
        let outcome = object == nil ? "the removal is dropped" : "the edit is dropped; what was here is printed"
        let now =
            isThere ? "it is as the server had it last, version \(version)" : "the server had no such object"
        Terminal.writeError("\(open.name)/\(key): \(outcome); \(now)\n")
        return true
    }
}
