import ThicketCrypto
import ThicketTreeShape

/// The written form (decision 0092): version (1) ‖ fields. A field is its number (2) ‖ its length (4) ‖ bytes,
/// big-endian; numbers ascend.
///
/// | number | field | bytes |
/// | --- | --- | --- |
/// | 1 | name | UTF-8 |
/// | 2 | child salt | 32 |
/// | 3 | content | suite (1) ‖ key (32) ‖ bytes of metadata, thumbnail and data (8 each) |
/// | 4 | modified | 8, milliseconds since 1970 |
/// | 5 | pairs of the app | for each, in the order of the keys: lp(key) ‖ lp(value), lengths of 16 bits |
/// | 6 | origin of a message | `OriginStatement`, 1 to 12,288 bytes |
/// | 7 | earlier keys, the newest first | for each: epoch (4) ‖ key (32); 1 to `EarlierKey.countMax` |
/// | 8 | last list of a branch that is shared no more | version (8) ‖ epoch (4) ‖ digest (32) |
/// | 9 | earlier ids of the content, the newest first | 16 each; 1 to `sealedBeforeMax` |
///
/// 1 and 2 are required. A reader keeps fields with unknown numbers below 0x8000 and writes them again. Numbers from
/// 0x8000 are for fields without which the others are misunderstood: a reader that does not know one refuses the whole.
extension NodeMetadata {
    private enum Field: UInt16, CaseIterable {
        case name = 1, childSalt, content, modified, appTags, origin, earlierKeys, endedList, sealedBefore
    }

    /// The first number of the fields that a reader must know.
    static let firstCritical: UInt16 = 0x8000

    /// Why bytes are not metadata.
    package enum Fault: Error, Hashable {
        /// A newer version has written something that must be understood.
        case newerFormat
        /// No version writes this.
        case damaged
    }

    // MARK: Writing

    /// The written form; equal for equal metadata.
    package var octets: SecureBytes {
        var fields: [(number: UInt16, content: SecureBytes)] = Field.allCases.compactMap { field in
            content(of: field).map { (number: field.rawValue, content: $0) }
        }
        fields += others
        fields.sort { $0.number < $1.number }
        let parts = fields.map { field in
            [SecureBytes(copying: field.number.octets + UInt32(field.content.count).octets), field.content]
        }
        return .joined([SecureBytes(copying: [format])] + parts.joined())
    }

    private func content(of field: Field) -> SecureBytes? {
        switch field {
        case .name: SecureBytes(copying: name.octets)
        case .childSalt: childSalt
        case .content: content.map(Self.octets)
        case .modified: (modified?.octets).map { SecureBytes(copying: $0) }
        case .appTags: appTags.isEmpty ? nil : SecureBytes(copying: appTags.flatMap(\.octets))
        case .origin: origin.map { SecureBytes(copying: $0) }
        case .earlierKeys: earlierKeys.isEmpty ? nil : .joined(earlierKeys.flatMap(\.octets))
        case .sealedBefore:
            sealedBefore.isEmpty ? nil : SecureBytes(copying: sealedBefore.flatMap(\.octets))
        case .endedList: endedList.map { SecureBytes(copying: $0.octets) }
        }
    }

    private static func octets(of content: ContentAccess) -> SecureBytes {
        let sizes = ContentSection.allCases.flatMap { content.sizes[$0].octets }
        return .joined([SecureBytes(copying: [content.suite.rawValue]), content.key, SecureBytes(copying: sizes)])
    }

    // MARK: Reading

    /// Reads the written form, which is the only one: other orders, lengths or repeated fields are refused.
    package init(octets: SecureBytes) throws(Fault) {
        var reader = FieldReader(octets)
        guard let format = reader.number(1), format > 0 else { throw .damaged }
        var fields = [UInt16: SecureBytes]()
        var last = 0
        while !reader.isAtEnd {
            guard let number = reader.number(2), Int(number) > last, let length = reader.number(4),
                let content = reader.part(Int(length))
            else { throw .damaged }
            (last, fields[UInt16(number)]) = (Int(number), content)
        }
        let known = Dictionary(
            uniqueKeysWithValues: Field.allCases.compactMap { field in
                fields.removeValue(forKey: field.rawValue).map { (field, $0) }
            })
        guard fields.keys.allSatisfy({ $0 < Self.firstCritical }) else { throw .newerFormat }
        try self.init(known, format: UInt8(format), others: fields)
    }

    private init(
        _ fields: [Field: SecureBytes], format: UInt8, others: [UInt16: SecureBytes]
    ) throws(Fault) {
        guard let name = fields[.name].flatMap({ try? NodeName(octets: $0.bytes) }),
            let salt = fields[.childSalt], salt.count == Self.saltBytes
        else { throw .damaged }
        let modified = fields[.modified]
        guard modified == nil || modified?.count == 8 else { throw .damaged }
        let origin = fields[.origin]?.bytes
        guard origin.map({ (1...OriginStatement.bytesMax).contains($0.count) }) ?? true else { throw .damaged }
        self.init(
            name: name, childSalt: salt, content: try Self.content(fields[.content]),
            modified: modified.map { Int64(bitPattern: FieldReader.number($0)) },
            appTags: try Self.appTags(fields[.appTags]), origin: origin,
            earlierKeys: try Self.earlierKeys(fields[.earlierKeys]), endedList: try Self.endedList(fields[.endedList]),
            format: format,
            others: others.sorted { $0.key < $1.key }.map { (number: $0.key, content: $0.value) })
        sealedBefore = try Self.sealedBefore(fields[.sealedBefore])
    }

    private static func content(_ field: SecureBytes?) throws(Fault) -> ContentAccess? {
        guard let field else { return nil }
        var reader = FieldReader(field)
        guard let number = reader.number(1), let key = reader.part(ContentAccess.keyBytes),
            let metadata = reader.number(8), let thumbnail = reader.number(8), let data = reader.number(8),
            reader.isAtEnd
        else { throw .damaged }
        guard let suite = AEADSuite(rawValue: UInt8(number)) else { throw .newerFormat }
        guard let sizes = try? SectionSizes(metadata: metadata, thumbnail: thumbnail, data: data) else {
            throw .damaged
        }
        return ContentAccess(suite, key: key, sizes: sizes)
    }

    private static func earlierKeys(_ field: SecureBytes?) throws(Fault) -> [EarlierKey] {
        guard let field else { return [] }
        var reader = FieldReader(field)
        var keys = [EarlierKey]()
        while !reader.isAtEnd {
            guard keys.count < EarlierKey.countMax, let epoch = reader.number(4),
                let key = reader.part(NodeKey.bytesCount).flatMap({ try? NodeKey($0) })
            else { throw .damaged }
            keys.append(EarlierKey(epoch: UInt32(epoch), key: key))
        }
        guard !keys.isEmpty else { throw .damaged }
        return keys
    }

    private static func sealedBefore(_ field: SecureBytes?) throws(Fault) -> [DataID] {
        guard let bytes = field?.bytes else { return [] }
        let count = bytes.count / DataID.bytesCount
        guard bytes.count % DataID.bytesCount == 0, (1...sealedBeforeMax).contains(count) else { throw .damaged }
        return (0..<count).compactMap { DataID(octets: bytes[$0 * DataID.bytesCount..<($0 + 1) * DataID.bytesCount]) }
    }

    private static func endedList(_ field: SecureBytes?) throws(Fault) -> EndedList? {
        guard let field else { return nil }
        guard let list = EndedList(octets: field.bytes) else { throw .damaged }
        return list
    }

    private static func appTags(_ field: SecureBytes?) throws(Fault) -> [AppTag] {
        guard let field else { return [] }
        var reader = FieldReader(field)
        var tags = [AppTag]()
        while !reader.isAtEnd {
            guard tags.count < AppTag.countMax, let keyLength = reader.number(2), let key = reader.part(Int(keyLength)),
                let valueLength = reader.number(2), let value = reader.part(Int(valueLength)),
                let text = String(validating: key.bytes, as: UTF8.self), let tag = AppTag(text, value.bytes)
            else { throw .damaged }
            tags.append(tag)
        }
        guard !tags.isEmpty, ordered(tags) == tags else { throw .damaged }
        return tags
    }
}

extension NodeMetadata.AppTag {
    /// lp(key) ‖ lp(value).
    fileprivate var octets: [UInt8] {
        UInt16(key.utf8.count).octets + Array(key.utf8) + UInt16(value.count).octets + value
    }
}

extension SecureBytes {
    /// A copy of what is not secret.
    fileprivate var bytes: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// Reads numbers and parts of a secret in order.
private struct FieldReader {
    private let octets: SecureBytes
    private var place = 0

    init(_ octets: SecureBytes) { self.octets = octets }

    var isAtEnd: Bool { place == octets.count }

    /// A number of this many bytes, at most 8, big-endian; nil beyond the end.
    mutating func number(_ count: Int) -> UInt64? {
        guard count <= octets.count - place else { return nil }
        defer { place += count }
        return octets.withUnsafeBytes { $0[place..<place + count].reduce(0) { $0 << 8 | UInt64($1) } }
    }

    /// The number that a whole field is.
    static func number(_ bytes: SecureBytes) -> UInt64 {
        bytes.withUnsafeBytes { $0.reduce(0) { $0 << 8 | UInt64($1) } }
    }

    /// The next bytes; nil beyond the end.
    mutating func part(_ count: Int) -> SecureBytes? {
        guard count <= octets.count - place else { return nil }
        defer { place += count }
        return octets.part(place..<place + count)
    }
}
