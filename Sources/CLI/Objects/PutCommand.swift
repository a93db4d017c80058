import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket put`: makes an object equal to the given one.
enum PutCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        let object = try read(call.argument("JSON"))
        let isOffline = call.flag("offline")
        let open = try await OpenBucket.open(
            try Account(call), bucket: name, store: isOffline ? .profileOnly : .profile, isOnline: !isOffline)
        if !isOffline { try await open.ready("\(name)/\(key) was not changed", offline: open.keepsEdit) }
        let what = "put \(name)/\(key)"
        let making = try await trying("cannot \(what)") { () throws(ClientError) in
            try await open.make(key, object, sends: !isOffline)
        }
        let isSame = making.isSame
        if isOffline {
            let refusal = try await trying(what) { () throws(ClientError) in
                try await open.bucket.info(key).refusal
            }
            if refusal != nil { throw open.keptRefusal(key, what, refusal) }
            await open.close()
            let outcome = isSame ? "is so already" : "is kept here and is sent with the next command on \(name)"
            Terminal.write("\(name)/\(key) \(outcome)\n")
            return
        }
        if !isSame { try await open.confirm(key, what, hadEdits: making.hadEdits) }
        let version = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version
        }
        await open.close()
        Terminal.write("\(name)/\(key) is \(isSame ? "so already," : "at") version \(version)\n")
    }

    /// JSON itself, `-` for standard input, or `@FILE`.
    private static func read(_ word: String) throws(Failure) -> JSONObject {
        let bytes: [UInt8]
        let source: String
        if same(word, "-") {
            source = "standard input"
            bytes = try Inputs.bytes(Files.read(STDIN_FILENO, bytesMax: Inputs.bytesMax), source)
        } else if word.hasPrefix("@") {
            source = String(word.dropFirst())
            bytes = try Inputs.bytes(Files.read(source, bytesMax: Inputs.bytesMax), source)
        } else {
            source = "the argument"
            bytes = Array(word.utf8)
        }
        return try Inputs.object(bytes, source)
    }
}

/// Reads the input of commands.
enum Inputs {
    /// Most bytes of one file or of standard input.
    static let bytesMax = 64 << 20

    static func bytes(_ contents: Files.Contents, _ source: String) throws(Failure) -> [UInt8] {
        switch contents {
        case .bytes(let bytes): return bytes
        case .absent: throw Failure("there is no file \(source)", .notFound)
        case .failed(let reason): throw Failure("\(source) cannot be read: \(reason)", .usage)
        }
    }

    static func object(_ bytes: [UInt8], _ source: String) throws(Failure) -> JSONObject {
        let value: JSONValue
        do { value = try JSONValue(parsing: bytes) } catch {
            throw Failure("\(source) is not JSON: \(error.explanation(in: bytes))", .usage)
        }
        guard let object = value.objectValue else {
            throw Failure("\(source) is JSON but not an object: an object is written {\"title\": \"Oak\"}", .usage)
        }
        return object
    }
}

/// `thicket rm`: removes objects.
enum RemoveCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, keys) = (call.argument("BUCKET"), call.arguments("KEY"))
        for key in keys { try Keys.check(key) }
        let isOffline = call.flag("offline")
        let open = try await OpenBucket.open(
            try Account(call), bucket: name, store: isOffline ? .profileOnly : .profile, isOnline: !isOffline)
        if !isOffline { try await open.ready("nothing was removed", offline: open.keepsEdit) }
        var missing = [String]()
        var removed = [(key: String, hadEdits: Bool)]()
        for key in keys {
            let hadEdits = try await trying("cannot remove \(name)/\(key)") { () throws(ClientError) in
                let hadEdits = try await open.bucket.info(key).hasUnconfirmedEdits
                // The object was removed on this machine, and the server has not acknowledged it.
                guard try await open.bucket.get(key) != nil else { return hadEdits ? true : nil }
                try await open.bucket.remove(key)
                return hadEdits
            }
            if let hadEdits { removed.append((key, hadEdits)) } else { missing.append(key) }
        }
        var refused: Failure?
        for (key, hadEdits) in removed {
            do throws(Failure) {
                if !isOffline { try await open.confirm(key, "remove \(name)/\(key)", hadEdits: hadEdits) }
                Terminal.write("\(name)/\(key) is removed\(isOffline ? " here; the removal is sent later" : "")\n")
            } catch {
                guard error.code == .refused || error.code == .unauthorized else { throw error }
                if let before = refused { Terminal.writeError("thicket: \(before.text)\n") }
                refused = error
            }
        }
        await open.close()
        if let refused { throw refused }
        guard missing.isEmpty || call.flag("force") else {
            throw Failure("there is no object \(missing.map { "\(name)/\($0)" }.joined(separator: ", "))", .notFound)
        }
    }
}
