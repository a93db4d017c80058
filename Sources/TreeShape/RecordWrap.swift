import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// The node's key, wrapped for one reader: an element of `w`, `{"t":…,"k":…,"c":…}`.
public struct RecordWrap: Sendable, Hashable {
    /// The reader, or readers, that can open a wrap.
    public enum Reader: Sendable, Hashable {
        /// All who can open the parent. `t` is `p`.
        case parent
        /// A user, by a public key. `t` is `u:` and the user's name.
        case user(UserID, keyID: String)
        /// A service of the app's operator, by a public key. `t` is `srv:` and its id.
        case service(String, keyID: String)
        /// All who know a password. `t` is `pw`.
        case password
    }

    /// The reader.
    public let reader: Reader
    /// The sealed key.
    public let sealed: [UInt8]

    /// A wrap that is not checked.
    public init(_ reader: Reader, sealed: [UInt8]) {
        (self.reader, self.sealed) = (reader, sealed)
    }

    /// `t`: the kind of the reader, and which one.
    public var kind: String {
        switch reader {
        case .parent: "p"
        case .user(let user, _): "u:" + user.text
        case .service(let service, _): "srv:" + service
        case .password: "pw"
        }
    }

    /// `k`: the id of the reader's public key; nil for a reader without one.
    public var keyID: String? {
        switch reader {
        case .parent, .password: nil
        case .user(_, let keyID), .service(_, let keyID): keyID
        }
    }

    /// Reads an element of `w`.
    init(_ value: JSONValue) throws(RecordFault) {
        guard case .object(let object) = value, let kind = object["t"]?.stringValue,
            let text = object["c"]?.stringValue, let sealed = Base64.decodeURL(Array(text.utf8)[...]),
            object["k"] == nil || object["k"]?.stringValue != nil
        else { throw .badWrap }
        let keyID = object["k"]?.stringValue
        guard object.count == (keyID == nil ? 2 : 3), let reader = Self.reader(kind, keyID),
            Self.lengths(reader).contains(sealed.count)
        else { throw .badWrap }
        guard sealed.first.flatMap(AEADSuite.init(rawValue:)) != nil else { throw .unknownSuite }
        self.init(reader, sealed: sealed)
    }

    private static func reader(_ kind: String, _ keyID: String?) -> Reader? {
        guard let keyID else { return kind == "p" ? .parent : kind == "pw" ? .password : nil }
        guard RecordSignature.isKeyID(keyID) else { return nil }
        if kind.utf8.starts(with: "u:".utf8) {
            return (try? UserID(Self.text(kind, after: 2))).map { .user($0, keyID: keyID) }
        }
        guard kind.utf8.starts(with: "srv:".utf8) else { return nil }
        let service = text(kind, after: 4)
        return RecordSignature.isKeyID(service) ? .service(service, keyID: keyID) : nil
    }

    /// Counted in bytes: a mark that combines with the colon is a part of the name.
    private static func text(_ kind: String, after count: Int) -> String {
        String(Substring(kind.utf8.dropFirst(count)))
    }

    private static func lengths(_ reader: Reader) -> ClosedRange<Int> {
        switch reader {
        case .parent: TreeLimits.parentWrapBytes...TreeLimits.parentWrapBytes
        case .user, .service: KeyWrap.bytesCount...KeyWrap.bytesCount
        case .password: TreeLimits.parentWrapBytes...TreeLimits.passwordWrapBytesMax
        }
    }

    var json: JSONValue {
        var object: JSONObject = ["t": .string(kind)]
        if let keyID { object["k"] = .string(keyID) }
        object["c"] = .string(Base64.encodeURL(sealed))
        return .object(object)
    }

    /// lp(t) ‖ lp(k) ‖ lp(c), with lengths of 16 bits; an absent `k` has length 0.
    var canonical: [UInt8] {
        [Array(kind.utf8), Array((keyID ?? "").utf8), sealed].flatMap { UInt16($0.count).octets + $0 }
    }
}

extension [RecordWrap] {
    /// Reads `w`. The result is in the order of the bytes of `t`, whatever the order was.
    init(_ value: JSONValue) throws(RecordFault) {
        guard case .array(let elements) = value else { throw .wrongType(.wraps) }
        guard !elements.isEmpty else { throw .noWraps }
        guard elements.count <= TreeLimits.wrapsMax else { throw .tooManyWraps }
        var wraps = [RecordWrap]()
        for element in elements { wraps.append(try RecordWrap(element)) }
        self = wraps.inOrder
        guard zip(self, dropFirst()).allSatisfy({ !$0.kind.utf8.elementsEqual($1.kind.utf8) }) else {
            throw .repeatedWrap
        }
    }

    /// In the order of the bytes of `t`.
    var inOrder: [RecordWrap] {
        if count < 2 { return self }
        return map { (kind: $0.kind, wrap: $0) }
            .sorted { $0.kind.utf8.lexicographicallyPrecedes($1.kind.utf8) }.map(\.wrap)
    }
}
