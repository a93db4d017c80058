public import ThicketProtocol

/// Which accounts may put nodes into an inbox: `{"policy":"everyone","contacts":[…],"blocked":[…]}` (decision 0067).
/// The server keeps it; the owner sets it as a whole.
public struct InboxPolicy: Sendable, Hashable {
    /// The accounts that are admitted, besides those that are blocked.
    public enum Admission: String, Sendable, Hashable, CaseIterable {
        /// All accounts of the app.
        case everyone
        /// The listed contacts.
        case contacts
        /// None but the owner.
        case nobody
    }

    /// The accounts that are admitted.
    public var admission: Admission
    /// Contacts, at most `TreeLimits.policyListMax`; kept, but not asked, unless the policy is `contacts`.
    public var contacts: Set<UserID>
    /// Blocked accounts, at most `TreeLimits.policyListMax`; also contacts may be blocked.
    public var blocked: Set<UserID>

    /// A policy; without arguments the one of an inbox whose owner has set none.
    public init(_ admission: Admission = .everyone, contacts: Set<UserID> = [], blocked: Set<UserID> = []) {
        (self.admission, self.contacts, self.blocked) = (admission, contacts, blocked)
    }

    /// Whether an account other than the owner is admitted.
    public func admits(_ user: UserID) -> Bool {
        switch admission {
        case .everyone: !blocked.contains(user)
        case .contacts: contacts.contains(user) && !blocked.contains(user)
        case .nobody: false
        }
    }

    /// Reads the body of a request or an answer. Its size is checked before it is parsed. A list that is missing is
    /// empty.
    ///
    /// - Throws: `TreeCallFault` for every deviation, also for an account that is listed twice.
    public init(parsing text: [UInt8]) throws(TreeCallFault) {
        let value = try CallObject.parse(text, bytesMax: TreeLimits.policyBytesMax, maxDepth: Self.depthMax)
        let object = try CallObject(value, ["policy", "contacts", "blocked"])
        guard let admission = Admission(rawValue: try object.text("policy")) else { throw .badValue("policy") }
        self.init(
            admission, contacts: try Self.users("contacts", in: object), blocked: try Self.users("blocked", in: object))
    }

    private static let depthMax = 2

    private static func users(_ name: String, in object: CallObject) throws(TreeCallFault) -> Set<UserID> {
        guard object.contains(name) else { return [] }
        let listed = try object.list(name)
        guard listed.count <= TreeLimits.policyListMax else { throw .badValue(name) }
        var users = Set<UserID>()
        for element in listed {
            guard let text = element.stringValue, let user = try? UserID(text), users.insert(user).inserted else {
                throw .badValue(name)
            }
        }
        return users
    }

    /// The policy as JSON, in its written form: lists in the order of the bytes.
    public var object: JSONObject {
        func list(_ users: Set<UserID>) -> JSONValue {
            .array(
                users.map(\.text).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { .string($0) })
        }
        return [
            "policy": .string(admission.rawValue), "contacts": list(contacts), "blocked": list(blocked),
        ]
    }
}
