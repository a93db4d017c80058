import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// All that a key log consists of, as `thicketd keylog export` writes it: JSON lines, the first with app, key, head and
/// statements of replaced keys, then one for each entry in log order. A holder needs nothing else to verify it.
struct KeyLogExport: Equatable {
    let app: String
    /// The log's public key, 32 bytes.
    let key: [UInt8]
    /// nil when none was signed yet.
    let head: [UInt8]?
    let rotations: [[UInt8]]
    let entries: [[UInt8]]

    /// Most bytes of a file that is read.
    static let bytesMax = 1 << 31

    init(app: String, key: [UInt8], head: [UInt8]?, rotations: [[UInt8]], entries: [[UInt8]]) {
        (self.app, self.key, self.head, self.rotations, self.entries) = (app, key, head, rotations, entries)
    }

    /// Parses a file.
    /// - Returns: nil when it is not one that `text` wrote.
    init?(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: 0x0A)
        guard let first = lines.first, let object = (try? JSONDocument(parsing: first))?.root.object,
            let app = object["app"]?.stringValue, let key = Self.bytes(object["key"]),
            let list = object["rotations"]?.arrayValue
        else { return nil }
        var (rotations, entries) = ([[UInt8]](), [[UInt8]]())
        for value in list {
            guard let bytes = Self.bytes(value) else { return nil }
            rotations.append(bytes)
        }
        for line in lines.dropFirst() {
            guard let value = (try? JSONDocument(parsing: line))?.root.object?["entry"], let bytes = Self.bytes(value)
            else { return nil }
            entries.append(bytes)
        }
        guard object["entries"]?.intValue == Int64(entries.count) else { return nil }
        let head = Self.bytes(object["head"])
        guard head != nil || object["head"] == .null else { return nil }
        self.init(app: app, key: key, head: head, rotations: rotations, entries: entries)
    }

    /// The lines of the file.
    var lines: [String] {
        let first: JSONObject = [
            "app": .string(app), "key": .string(Base64.encodeURL(key)),
            "head": head.map { .string(Base64.encodeURL($0)) } ?? .null,
            "rotations": .array(rotations.map { .string(Base64.encodeURL($0)) }),
            "entries": .number(JSONNumber(Int64(entries.count))),
        ]
        return [Self.line(first)] + entries.map { Self.line(["entry": .string(Base64.encodeURL($0))]) }
    }

    private static func line(_ object: JSONObject) -> String {
        var writer = JSONWriter()
        writer.write(object)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func bytes(_ value: JSONValue?) -> [UInt8]? {
        value?.stringValue.flatMap { Base64.decodeURL(Array($0.utf8)[...]) }
    }
}

extension KeyLogExport {
    /// What contradicts the log's rules; empty for a sound log. Verifies every signature, about a tenth of a
    /// millisecond for each entry.
    var findings: [String] {
        var findings = [String]()
        guard let key = try? Ed25519.VerifyingKey(key) else { return ["key log of \(app): its key is invalid"] }
        do throws(KeyLogError) {
            try checkRotations(key)
        } catch { findings.append("key log of \(app): changes of its key: \(error)") }
        do throws(KeyLogError) {
            let head = try head.map { (bytes) throws(KeyLogError) in try KeyLogHead(bytes) }
            try head?.check(key)
            // Entries may have been added since the head was signed.
            let stated = head.map { Int($0.size / 2) } ?? 0
            guard stated <= entries.count else {
                throw KeyLogError(.olderHead, "entries that the newest head states are missing")
            }
            let log = try KeyLog(app: app, entries: Array(entries.prefix(stated)))
            if let head, !log.agrees(with: head) {
                throw KeyLogError(.otherLog, "the newest head does not match the entries")
            }
            _ = try KeyLog(app: app, entries: entries)
        } catch { findings.append("key log of \(app): \(error)") }
        return findings
    }

    /// Each statement begins at the key of the one before, and the last one ends at the log's key.
    private func checkRotations(_ key: Ed25519.VerifyingKey) throws(KeyLogError) {
        var last: Ed25519.VerifyingKey?
        for bytes in rotations {
            let rotation = try LogKeyRotation(bytes)
            try rotation.check(app: app, trusted: last ?? rotation.old)
            last = rotation.new
        }
        guard last.map({ $0 == key }) ?? true else {
            throw KeyLogError(.previous, "the newest statement does not end at the log's key")
        }
    }
}
