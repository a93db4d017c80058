import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTreeShape
import ThicketTreesystem

/// `thicket tree policy`: which accounts may write to this one.
enum PolicyCall {
    private static let what = "the policy of the inbox was not changed"

    static func run(_ call: Call) async throws(Failure) {
        let (word, change) = (call.arguments("POLICY").first, try Change(call))
        if let word, InboxPolicy.Admission(rawValue: word) == nil {
            throw Failure("there is no policy '\(Screen.safe(word))': everyone, contacts or nobody", .usage)
        }
        let keys = try KeyCall(call, what)
        let account = try keys.open()
        let session = try await trying(what) { () throws(ClientError) in
            try await keys.account.peopleSession(account)
        }
        let result: Result<(InboxPolicy, [Contact]), Failure>
        do throws(Failure) { result = .success(try await policy(word, change, session)) } catch {
            result = .failure(error)
        }
        await session.close()
        let (policy, contacts) = try result.get()
        try LineOutput.write(
            call.flag("json") ? JSONValue.object(policy.object).serializedText + "\n" : text(policy, contacts))
    }

    /// What a call changes in the lists.
    private struct Change: Sendable {
        let admitted: [String]
        let blocked: [String]
        let unblocked: [String]

        init(_ call: Call) throws(Failure) {
            let invocation = call.invocation
            (admitted, blocked) = (invocation.values("admit"), invocation.values("block"))
            unblocked = invocation.values("unblock")
            if let both = blocked.first(where: { name in unblocked.contains { same($0, name) } }) {
                throw Failure("--block and --unblock name \(Screen.safe(both)) both", .usage)
            }
        }

        var isEmpty: Bool { admitted.isEmpty && blocked.isEmpty && unblocked.isEmpty }
    }

    private static func policy(
        _ word: String?, _ change: Change, _ session: ClientSession
    ) async throws(Failure) -> (InboxPolicy, [Contact]) {
        // Looked up before the policy is read: as little time as possible lies between reading and replacing it.
        let book = try await people(session)
        let admitted = try await users(change.admitted, book)
        let (blocked, unblocked) = (try await users(change.blocked, book), try await users(change.unblocked, book))
        let contacts: [Contact]
        do throws(PeopleError) { contacts = try await book.contacts().map(\.contact) } catch {
            throw Failure(what, people: error)
        }
        var policy = try await trying("the policy of the inbox was not read") { () throws(ClientError) in
            try await session.inboxPolicy()
        }
        guard word != nil || !change.isEmpty else { return (policy, contacts) }
        policy.contacts.formUnion(admitted)
        policy.blocked = policy.blocked.union(blocked).subtracting(unblocked)
        if let word, let admission = InboxPolicy.Admission(rawValue: word) {
            policy.admission = admission
            // The people whom this machine knows may go on writing.
            if admission == .contacts { policy.contacts.formUnion(contacts.compactMap { try? UserID($0.user) }) }
        }
        let wanted = policy
        return (try await trying(what) { () throws(ClientError) in try await session.setInboxPolicy(wanted) }, contacts)
    }

    private static func people(_ session: ClientSession) async throws(Failure) -> KeyBook {
        do throws(PeopleError) { return try await session.people() } catch { throw Failure(what, people: error) }
    }

    private static func users(_ names: [String], _ book: KeyBook) async throws(Failure) -> Set<UserID> {
        var users = Set<UserID>()
        for text in names {
            do throws(PeopleError) { users.insert(try await PeopleCall.user(text, book)) } catch {
                throw Failure(what, people: error, about: text)
            }
        }
        return users
    }

    private static func text(_ policy: InboxPolicy, _ contacts: [Contact]) -> String {
        func list(_ users: Set<UserID>) -> String {
            let names = users.map { user in
                Screen.safe(contacts.first { same($0.user, user.text) }?.name ?? user.text)
            }
            return names.sorted().map { "    \($0)\n" }.joined()
        }
        var text =
            switch policy.admission {
            case .everyone: "everyone: all accounts of the app may write to this one\n"
            case .contacts:
                "contacts: \(policy.contacts.count) accounts may write to this one\n" + list(policy.contacts)
            case .nobody: "nobody: no account may write to this one\n"
            }
        if !policy.blocked.isEmpty { text += "blocked, whatever else:\n" + list(policy.blocked) }
        return text
    }
}
