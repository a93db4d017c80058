import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// Why a JSON value is not a list of a shared branch. Contains nothing of it.
public enum ShareListFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A member is missing, unknown, or has another type or form.
    case malformed
    /// More than `TreeLimits.shareMembersMax` members.
    case tooManyMembers
    /// Members or grants are repeated or not in order, or the owner is among them.
    case badOrder

    /// A part of a sentence, without content of the list.
    public var description: String {
        switch self {
        case .malformed: "a member is missing, unknown or of another form"
        case .tooManyMembers: "it has more than \(TreeLimits.shareMembersMax)"
        case .badOrder: "it repeats one, or is not in order"
        }
    }
}

extension ShareList {
    /// Bytes of `h`: SHA-256.
    private static let digestBytes = 32
    private static let required: Set<String> = ["n", "e", "c", "a", "by", "k", "sig"]
    private static let optional: Set<String> = ["g", "h"]

    /// Reads `l`. The signature is not verified.
    public init(_ value: JSONValue) throws(ShareListFault) {
        guard case .object(let object) = value, Self.required.allSatisfy(object.contains),
            object.keys.allSatisfy({ Self.required.contains($0) || Self.optional.contains($0) }),
            let version = Self.number(object["n"], 1...TreeLimits.versionMax),
            let epoch = Self.number(object["e"], 0...Int64(UInt32.max)),
            let commitment = Self.octets(object["c"], NodeKey.bytesCount),
            case .array(let listed)? = object["a"]
        else { throw .malformed }
        guard listed.count <= TreeLimits.shareMembersMax else { throw .tooManyMembers }
        var members = [Member]()
        for value in listed { members.append(try Self.member(value)) }
        var grants = [Grant]()
        if let value = object["g"] {
            guard case .array(let listed) = value, !listed.isEmpty, listed.count <= members.count else {
                throw .malformed
            }
            for value in listed { grants.append(try Self.grant(value)) }
        }
        guard Self.isInOrder(members.map(\.user)), Self.isInOrder(grants.map(\.user)) else { throw .badOrder }
        var previous: [UInt8]?
        if let value = object["h"] {
            previous = Self.octets(value, Self.digestBytes)
            guard previous != nil else { throw .malformed }
        }
        guard let author = object["by"]?.stringValue.flatMap({ try? UserID($0) }),
            let keyID = object["k"]?.stringValue,
            let octets = Self.octets(object["sig"], RecordSignature.bytesCount),
            let signature = try? RecordSignature(author: author, keyID: keyID, octets: octets)
        else { throw .malformed }
        self.init(
            version: version, epoch: UInt32(epoch), commitment: commitment, members: members, grants: grants,
            previous: previous, signature: signature)
    }

    private static func member(_ value: JSONValue) throws(ShareListFault) -> Member {
        guard case .object(let object) = value, object.count == 3,
            let user = object["u"]?.stringValue.flatMap({ try? UserID($0) }),
            let permissions = object["r"]?.stringValue.flatMap(SharePermissions.init(text:)),
            let keyID = object["k"]?.stringValue, RecordSignature.isKeyID(keyID)
        else { throw .malformed }
        return Member(user, permissions, keyID: keyID)
    }

    private static func grant(_ value: JSONValue) throws(ShareListFault) -> Grant {
        guard case .object(let object) = value, object.count == 5,
            let user = object["u"]?.stringValue.flatMap({ try? UserID($0) }),
            let keyID = object["k"]?.stringValue, RecordSignature.isKeyID(keyID),
            let epoch = number(object["f"], 0...Int64(UInt32.max)),
            let ownerKeyID = object["o"]?.stringValue, RecordSignature.isKeyID(ownerKeyID),
            let signature = octets(object["sig"], RecordSignature.bytesCount)
        else { throw .malformed }
        return Grant(
            user, keyID: keyID, fromEpoch: UInt32(epoch), ownerKeyID: ownerKeyID, signature: signature)
    }

    private static func number(_ value: JSONValue?, _ bounds: ClosedRange<Int64>) -> Int64? {
        guard case .number(let number)? = value, let whole = Int64(number.lexeme), bounds.contains(whole),
            String(whole) == number.lexeme
        else { return nil }
        return whole
    }

    private static func octets(_ value: JSONValue?, _ count: Int) -> [UInt8]? {
        guard let text = value?.stringValue, let octets = Base64.decodeURL(Array(text.utf8)[...]),
            octets.count == count
        else { return nil }
        return octets
    }

    private static func isInOrder(_ users: [UserID]) -> Bool {
        zip(users, users.dropFirst()).allSatisfy { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }
    }

    /// The list as JSON, in its written form.
    public var json: JSONValue {
        var object: JSONObject = [
            "n": .number(JSONNumber(version)), "e": .number(JSONNumber(Int64(epoch))),
            "c": .string(Base64.encodeURL(commitment)), "a": .array(members.map(Self.json)),
        ]
        if !grants.isEmpty { object["g"] = .array(grants.map(Self.json)) }
        if let previous { object["h"] = .string(Base64.encodeURL(previous)) }
        object["by"] = .string(signature.author.text)
        object["k"] = .string(signature.keyID)
        object["sig"] = .string(Base64.encodeURL(signature.octets))
        return .object(object)
    }

    private static func json(_ member: Member) -> JSONValue {
        ["u": .string(member.user.text), "r": .string(member.permissions.text), "k": .string(member.keyID)]
    }

    private static func json(_ grant: Grant) -> JSONValue {
        [
            "u": .string(grant.user.text), "k": .string(grant.keyID), "f": .number(JSONNumber(Int64(grant.fromEpoch))),
            "o": .string(grant.ownerKeyID), "sig": .string(Base64.encodeURL(grant.signature)),
        ]
    }
}
