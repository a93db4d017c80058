import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// How a file's content is stored in an object.
enum FileKind: String, Sendable, Equatable {
    /// `KEY.json`: the whole object.
    case json
    /// Any other name: the member `text` of the object.
    case text
}

/// Bounds for files that are read from and written to folders.
enum FolderLimits {
    /// Bytes of a file.
    static let fileBytesMax = 64 << 20
    /// Bytes of a file name: the bound of the usual file systems.
    static let nameBytesMax = 255
    /// Bytes of a key that becomes a file name; the name has its own bound.
    static let keyBytesMax = Limits.entityKeyBytesMax
}

/// A one-to-one mapping between names of files and keys of objects.
///
/// | file | key | |
/// |---|---|---|
/// | `plan.json` | `plan` | a whole object |
/// | `plan.md` | `plan.md` | an object with a `text` |
/// | `my notes.txt` | `my%20notes.txt` | bytes that keys do not admit are percent-encoded UTF-8, as in URLs |
/// | `100%.txt` | `100%25.txt` | |
/// | 30 letters of 3 bytes | `%@4pyT4pyT…` | base64url where escapes, 9 bytes a letter, are longer than a key |
/// | `=a%2Fb.json` | `a%2Fb` | keys that no other file name produces are written unchanged after a `=` |
///
/// Hidden files, and names that editors give to their temporary files, have no key.
struct FileName: Sendable, Equatable {
    let name: String
    let key: String
    let kind: FileKind

    static func == (left: FileName, right: FileName) -> Bool {
        same(left.name, right.name) && same(left.key, right.key) && left.kind == right.kind
    }

    private static let ending = ".json"

    /// Why a file has no object.
    enum Problem: Error, Equatable {
        /// A hidden or temporary file, ignored without a message.
        case passedOver
        case keyTooLong

        /// The text for a person, the same in every command.
        var text: String {
            switch self {
            case .passedOver: "hidden and temporary files are passed over"
            case .keyTooLong: "the key is too long for a file name"
            }
        }
    }

    /// The name and key for a file.
    init(file name: String) throws(Problem) {
        guard !FileName.isPassedOver(name) else { throw .passedOver }
        let isJSON = name.hasSuffix(FileName.ending) && name.utf8.count > FileName.ending.utf8.count
        let stem = isJSON ? String(name.dropLast(FileName.ending.count)) : name
        let key = FileName.key(of: stem)
        guard key.utf8.count <= FolderLimits.keyBytesMax else { throw .keyTooLong }
        self.name = name
        self.key = key
        self.kind = isJSON ? .json : .text
    }

    /// The name for an object. A key that ends like a JSON file is always a JSON file.
    init(key: String, kind: FileKind) throws(Problem) {
        guard key.utf8.count <= FolderLimits.keyBytesMax else { throw .keyTooLong }
        let stem = FileName.stem(of: key)
        self.key = key
        self.kind = kind == .text && stem.hasSuffix(FileName.ending) ? .json : kind
        name = self.kind == .json ? stem + FileName.ending : stem
        guard name.utf8.count <= FolderLimits.nameBytesMax else { throw .keyTooLong }
    }

    /// A hidden file, a file left by an editor, or a file that is being written.
    static func isPassedOver(_ name: String) -> Bool {
        // A name that begins with `=` is never a temporary file.
        if name.hasPrefix("=") { return false }
        if name.isEmpty || name.hasPrefix(".") || name.hasSuffix("~") { return true }
        if name.hasPrefix("#") && name.hasSuffix("#") { return true }
        // vim creates a file of this name to test whether it may write.
        if same(name, "4913") { return true }
        return [".swp", ".swx", ".tmp", ".part", ".crdownload"].contains { name.hasSuffix($0) }
    }

    // MARK: - One for one

    private static func key(of stem: String) -> String {
        if stem.hasPrefix("=") {
            let key = String(stem.dropFirst())
            // Programs that did not know the short form have written its keys in this form.
            let isOfKey = key.hasPrefix(shortMark) || same(self.stem(of: key), stem)
            if isOfKey, (try? EntityKey(key)) != nil { return key }
        }
        return encoded(stem)
    }

    private static func stem(of key: String) -> String {
        guard let decoded = lengthened(key) ?? decoded(key), isAdmitted(decoded), same(encoded(decoded), key) else {
            return "=" + key
        }
        return decoded
    }

    /// Whether the scan of a folder would find it.
    private static func isAdmitted(_ stem: String) -> Bool {
        !stem.utf8.contains { $0 == 0x2F || $0 < 0x20 || $0 == 0x7F } && !isPassedOver(stem)
            && !isPassedOver(stem + ending) && !stem.hasPrefix("=")
    }

    /// The prefix of the short form; no percent escape begins with it.
    private static let shortMark = "%@"

    /// The short form of a name whose percent escapes do not fit into a key: base64url of its UTF-8, without padding.
    private static func shortened(_ stem: String) -> String {
        shortMark + Base64.encodeURL(Array(stem.utf8))
    }

    /// The name of a short form; nil for every other key.
    private static func lengthened(_ key: String) -> String? {
        guard key.hasPrefix(shortMark),
            let bytes = Base64.decodeURL(Array(key.utf8.dropFirst(shortMark.utf8.count))[...]),
            let stem = String(validating: bytes, as: UTF8.self), !stem.isEmpty
        else { return nil }
        return stem
    }

    /// The key of a name: its percent escapes, or the short form where they are too long.
    private static func encoded(_ stem: String) -> String {
        let long = escaped(stem)
        return long.utf8.count <= FolderLimits.keyBytesMax ? long : shortened(stem)
    }

    private static func escaped(_ stem: String) -> String {
        let digits: [UInt8] = Array("0123456789ABCDEF".utf8)
        var bytes = [UInt8]()
        for byte in stem.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func decoded(_ key: String) -> String? {
        var bytes = [UInt8]()
        var rest: ArraySlice<UInt8> = Array(key.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        default: nil
        }
    }

    /// The bytes that keys admit, except the percent sign.
    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2E
            || byte == 0x5F || byte == 0x2D || byte == 0x40
    }
}
