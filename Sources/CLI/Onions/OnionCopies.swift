import ThicketCommandLine
import ThicketCrypto
import ThicketOnions
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket onions export` and `thicket onions import`.
enum OnionCopies {
    /// Most bytes of an imported file.
    static let bytesMax = 64 << 20

    // MARK: - Export

    static func export(_ call: Call) async throws(Failure) {
        let path = call.argument("FILE")
        // Checked before a password is asked for.
        if exists(path), !call.flag("force") { throw alreadyExists(path) }
        try await OnionCall(call).with("cannot export the notes", copies: call.flag("sealed")) {
            vault throws(Failure) in
            let onions = try await OnionCall.trying("cannot export the notes") { () throws(OnionError) in
                try await vault.list()
            }
            var (lines, left): ([UInt8], Int) = ([], 0)
            for onion in onions {
                switch await copy(of: onion, in: vault, call) {
                case .success(let object): lines += JSONValue.object(object).serialized() + [0x0A]
                case .failure(let error):
                    left += 1
                    Terminal.writeError("left out \(onion.id.prefix(8)): \(error)\n")
                }
            }
            if same(path, "-") {
                Terminal.write(lines, to: Terminal.standardOutput)
            } else {
                if call.flag("force") {
                    try Files.replace(path, lines, mode: 0o600)
                } else {
                    let outcome = try Files.replace(
                        path, expecting: nil, lines, bytesMax: bytesMax, newMode: 0o600)
                    guard outcome == .done else { throw alreadyExists(path) }
                }
                let how = call.flag("sealed") ? "sealed" : "in clear: every reader of the file can read them"
                Terminal.write("wrote \(Words.notes(onions.count - left)) to \(path), \(how)\n")
            }
            if left > 0 { throw Failure("\(Words.notes(left)) left out") }
        }
    }

    private static func exists(_ path: String) -> Bool { !same(path, "-") && access(path, F_OK) == 0 }

    private static func alreadyExists(_ path: String) -> Failure {
        Failure("nothing was written: \(path) exists already; --force replaces it")
    }

    private static func copy(of onion: Onion, in vault: Vault, _ call: Call) async -> Result<JSONObject, OnionError> {
        do throws(OnionError) {
            if call.flag("sealed") {
                var object = try await vault.sealedCopy(of: onion.id, consents: call.flag("slow"))
                object["id"] = .string(onion.id)
                return .success(object)
            }
            let text = try await vault.read(onion.id, consents: call.flag("slow"))
            return .success([
                "title": .string(text.title.shownText), "info": .string(text.info.shownText),
                "createdAt": .number(JSONNumber(onion.createdAt)),
            ])
        } catch {
            return .failure(error)
        }
    }

    // MARK: - Import

    static func importing(_ call: Call) async throws(Failure) {
        let onions = try OnionCall(call)
        let given = onions.isKeyed ? nil : try await onions.login()
        let copies = try read(call.argument("FILE"))
        let opener: OnionCall.Opener
        if let given {
            opener = .stretched(given)
        } else {
            opener = try await onions.opener(
                copies: copies.contains { $0["onionTitle"] != nil || $0["onionInfo"] != nil })
        }
        let vault = try await onions.open(opener)
        var (taken, there, failed) = (0, 0, 0)
        for (number, copy) in zip(1..., copies) {
            do throws(OnionError) {
                if try await importNote(copy, into: vault, call) { taken += 1 } else { there += 1 }
            } catch {
                failed += 1
                Terminal.writeError("note \(number) was not taken: \(error)\n")
                if case .full = error { break }
                if case .client = error { break }
            }
        }
        await onions.end(vault)
        Terminal.write("took \(Words.notes(taken))\(there > 0 ? ", \(there) existed already" : "")\n")
        let rest = copies.count - taken - there
        if rest > 0 { throw Failure("\(Words.notes(rest)) not taken") }
    }

    /// - Returns: false for a note that already exists.
    private static func importNote(_ copy: JSONObject, into vault: Vault, _ call: Call) async throws(OnionError) -> Bool
    {
        let text: NoteText
        if copy["onionTitle"] != nil || copy["onionInfo"] != nil {
            text = try await vault.open(copy, consents: call.flag("slow"))
        } else {
            guard let title = copy["title"]?.stringValue, let info = copy["info"]?.stringValue else {
                throw .refused("it has neither 'title' and 'info', as texts, nor those of the old app")
            }
            text = NoteText(
                title: SecureBytes(copying: Array(title.utf8)), info: SecureBytes(copying: Array(info.utf8)))
        }
        let created = copy["createdAt"].flatMap(NoteTime.milliseconds)
        for onion in try await vault.list() where onion.createdAt == created {
            if try await vault.read(onion.id, consents: call.flag("slow")) == text { return false }
        }
        _ = try await vault.create(text, createdAt: created)
        return true
    }

    private static func read(_ path: String) throws(Failure) -> [JSONObject] {
        let contents =
            same(path, "-") ? Files.read(STDIN_FILENO, bytesMax: bytesMax) : Files.read(path, bytesMax: bytesMax)
        switch contents {
        case .absent: throw Failure("there is no file \(path)", .notFound)
        case .failed(let reason): throw Failure("\(path) cannot be read: \(reason)", .usage)
        case .bytes(let bytes):
            guard let copies = objects(bytes) else {
                let name = same(path, "-") ? "standard input" : path
                throw Failure("\(name) holds neither lines of JSON objects nor a list of them", .usage)
            }
            return copies
        }
    }

    /// The objects of a file: a list, the list in `results`, or JSON lines.
    static func objects(_ bytes: [UInt8]) -> [JSONObject]? {
        if let whole = try? JSONValue(parsing: bytes) {
            if let list = whole.arrayValue ?? whole["results"]?.arrayValue { return all(list) }
            return whole.objectValue.map { [$0] }
        }
        return all(
            bytes.split(separator: 0x0A).map(Array.init).filter { $0.contains { $0 > 0x20 } }.map { line in
                (try? JSONValue(parsing: line)) ?? .null
            })
    }

    private static func all(_ values: [JSONValue]) -> [JSONObject]? {
        let objects = values.compactMap(\.objectValue)
        return objects.count == values.count ? objects : nil
    }
}
