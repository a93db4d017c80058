import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket ls`: lists the buckets used on this machine, or the objects of one.
enum ListCommand {
    static func run(_ call: Call) async throws(Failure) {
        let account = try Account(call)
        if let bucket = call.invocation.argument("BUCKET") {
            try await listObjects(call, account, bucket)
        } else {
            try await listBuckets(call, account)
        }
    }

    private static func listBuckets(_ call: Call, _ account: Account) async throws(Failure) {
        guard !call.flag("removed") else {
            throw Failure(
                "--removed lists the removed objects of one bucket: name it, as in 'thicket ls notes --removed'", .usage
            )
        }
        guard account.folder != nil else {
            throw Failure("which bucket? The buckets used on a machine are known for a profile only", .usage)
        }
        let names = try ProfileHome(call.environment).buckets(account.profileName)
        if names.isEmpty, !call.flag("json") {
            Terminal.writeError(
                "No bucket was used on this machine yet. The protocol has no list of a server's buckets: name one, as in "
                    + "'thicket ls notes'.\n")
        }
        for name in names {
            guard call.flag("long") else {
                Terminal.write(call.flag("json") ? line(["bucket": .string(name)]) : "\(name)\n")
                continue
            }
            let open = try await OpenBucket.open(
                account, bucket: name, store: .profile, isOnline: !call.flag("offline"))
            if !call.flag("offline") { try await open.ready(offline: "the copies kept here are counted") }
            let (count, unsent) = try await trying("cannot list \(name)") { () throws(ClientError) in
                (try await open.bucket.keys().count, try await open.bucket.pendingCount)
            }
            let refused = try await trying("cannot list \(name)") { () throws(ClientError) in
                try await open.bucket.refused().count
            }
            await open.close()
            if call.flag("json") {
                Terminal.write(
                    line([
                        "bucket": .string(name), "objects": .number(JSONNumber(Int64(count))),
                        "unsent": .number(JSONNumber(Int64(unsent))), "refused": .number(JSONNumber(Int64(refused))),
                    ]))
            } else {
                let waits = unsent == 0 ? "" : ", \(unsent) not sent"
                Terminal.write(
                    "\(name)  \(count) objects\(waits)\(refused == 0 ? "" : ", \(refused) of them refused")\n")
            }
        }
    }

    private static func listObjects(_ call: Call, _ account: Account, _ name: String) async throws(Failure) {
        if call.flag("removed") { return try await RemovedObjects.list(call, account, name) }
        let isOffline = call.flag("offline")
        let open = try await OpenBucket.open(
            account, bucket: name, store: isOffline ? .profileOnly : .profile, isOnline: !isOffline)
        if !isOffline { try await open.ready(offline: "the copy kept here is listed") }
        let keys = try await trying("cannot list \(name)") { () throws(ClientError) in
            try await open.bucket.keys()
        }
        let widest = min(keys.map(\.utf8.count).max() ?? 0, 40)
        for key in keys {
            let row: String? = try await trying("cannot list \(name)") { () throws(ClientError) in
                let info: ObjectInfo = try await open.bucket.info(key)
                guard call.flag("json") || call.flag("long") else { return text(key, info, widest) + "\n" }
                // The object was removed after the keys were listed.
                guard let object: JSONObject = try await open.bucket.get(key) else { return nil }
                return call.flag("json")
                    ? json(key, info, object, isLong: call.flag("long")) : long(key, info, object, widest)
            }
            if let row, !Terminal.write(row) { break }
        }
        await open.close()
        if keys.isEmpty, Terminal.isTerminal(Terminal.standardError), !call.flag("json") {
            Terminal.writeError("\(name) is empty\n")
        }
    }

    private static func line(_ object: JSONObject) -> String { JSONValue.object(object).serializedText + "\n" }

    private static func text(_ key: String, _ info: ObjectInfo, _ widest: Int) -> String {
        let padding = String(repeating: " ", count: max(0, widest - key.utf8.count))
        let version = info.version == 0 ? "new" : "v\(info.version)"
        let standing =
            info.refusal.map { "  refused (\($0))" } ?? (info.hasUnconfirmedEdits ? "  not sent" : "")
        return "\(key)\(padding)  \(version)\(standing)"
    }

    private static func long(_ key: String, _ info: ObjectInfo, _ object: JSONObject, _ widest: Int) -> String {
        let value = JSONValue.object(object)
        let start = text(key, info, widest) + "  \(value.serializedSize) B  "
        let room = max(20, Terminal.columns(Terminal.standardOutput) - start.utf8.count - 1)
        return start + Screen.line(value, columns: room) + "\n"
    }

    private static func json(_ key: String, _ info: ObjectInfo, _ object: JSONObject, isLong: Bool) -> String {
        var row: JSONObject = [
            "key": .string(key), "version": .number(JSONNumber(info.version)),
            "unsent": .bool(info.hasUnconfirmedEdits),
        ]
        if let refusal: Int = info.refusal { row["refused"] = .number(JSONNumber(Int64(refusal))) }
        if isLong { row["object"] = .object(object) }
        return line(row)
    }
}
