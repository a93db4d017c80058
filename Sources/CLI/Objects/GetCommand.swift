import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// `thicket get`: prints one object, one version of it, or one field.
enum GetCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        var path: FieldPath?
        if let text = call.value("path") {
            guard let parsed = FieldPath(text) else {
                throw Failure("--path names keys with a dot between them, as in author.name, not '\(text)'", .usage)
            }
            path = parsed
        }
        let version = try Keys.version(call.value("version"))
        if call.flag("offline"), version != nil {
            throw Failure("old versions are kept by the server: --version and --offline do not go together", .usage)
        }
        let account = try Account(call)
        let isOffline = call.flag("offline")
        let open = try await OpenBucket.open(
            account, bucket: name, store: isOffline ? .profileOnly : .profile, isOnline: !isOffline)
        // Only the server has old versions, so `--offline` cannot show them.
        if !isOffline { try await open.ready(offline: version == nil ? "the copy kept here is shown" : nil) }
        let object: JSONObject
        if let version {
            object = try await Keys.fetch(version, of: key, in: open)
        } else {
            guard
                let found = try await trying(
                    "cannot read \(name)/\(key)",
                    { () throws(ClientError) in
                        try await open.bucket.get(key)
                    })
            else {
                await open.close()
                throw Failure(
                    "there is no object \(name)/\(key)\(isOffline ? " in the copy kept here" : "")", .notFound)
            }
            object = found
        }
        await open.close()
        try show(object, path, call)
    }

    private static func show(_ object: JSONObject, _ path: FieldPath?, _ call: Call) throws(Failure) {
        var value = JSONValue.object(object)
        if let path {
            guard let found = path.value(in: object) else {
                throw Failure(
                    "\(call.argument("BUCKET"))/\(call.argument("KEY")) has no field \(call.value("path") ?? "")",
                    .notFound)
            }
            value = found
        }
        let text: String
        if case .string(let string) = value, path != nil, !call.flag("json") {
            // A text that already ends in a line feed gets no second one.
            text = string.utf8.last == 0x0A ? string : string + "\n"
        } else {
            text = call.flag("json") ? value.serializedText + "\n" : Pretty.text(value)
        }
        Terminal.write(text)
    }
}

/// Keys and versions as given on the command line.
enum Keys {
    static func check(_ key: String) throws(Failure) {
        do throws(IdentifierError) { _ = try EntityKey(key) } catch {
            throw Failure(
                "'\(Screen.safe(key))' is not a key: it \(error.problem). A key is 1 to 256 of A-Z, a-z, 0-9, '.', "
                    + "'_', '-', '%' and '@'",
                .usage)
        }
    }

    static func checkBucket(_ name: String) throws(Failure) {
        do throws(IdentifierError) { _ = try BucketName(name) } catch {
            throw Failure(
                "'\(Screen.safe(name))' is not a bucket name: it \(error.problem). A bucket name is 1 to 64 of A-Z, "
                    + "a-z, 0-9, '.', '_', '-' and '%'", .usage)
        }
    }

    static func version(_ text: String?) throws(Failure) -> Int64? {
        guard let text else { return nil }
        guard let version = Int64(text.hasPrefix("v") ? String(text.dropFirst()) : text), version > 0 else {
            throw Failure("a version is a number from 1, not '\(text)'", .usage)
        }
        return version
    }

    /// One version of an object, from the server.
    static func fetch(_ version: Int64, of key: String, in open: OpenBucket) async throws(Failure) -> JSONObject {
        let found = try await trying("cannot read version \(version) of \(open.name)/\(key)") {
            () throws(ClientError) in
            try await open.asking { () throws(ClientError) in try await open.bucket.version(version, of: key) }
        }
        guard let found else {
            throw Failure(
                "the server has no version \(version) of \(open.name)/\(key); 'thicket history \(open.name) \(key)' "
                    + "lists what it keeps", .notFound)
        }
        return found
    }
}
