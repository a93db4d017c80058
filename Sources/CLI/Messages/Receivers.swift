import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// The accounts to which a command sends: each was looked up in the key log, and has keys that may be used.
package struct Receivers: Sendable {
    struct Receiver: Sendable {
        /// As it was typed.
        let text: String
        let user: UserID
    }

    let all: [Receiver]

    package var users: Set<UserID> { Set(all.map(\.user)) }
    /// `ben and cem`, for a message.
    var names: String { Self.list(all.map { Screen.safe($0.text) }) }

    /// Looks up every receiver. One that was found by its login name becomes a contact: from then on the name stands
    /// for this account, also if the server gives the name to another one.
    ///
    /// - Parameter what: what is not done without keys, as the beginning of a sentence.
    /// - Throws: `alarm`, `notFound`, `usage` for the own account.
    package static func find(_ texts: [String], in open: OpenTree, _ what: String) async throws(Failure) -> Receivers {
        let book = try await open.people(what)
        var all = [Receiver]()
        for text in texts {
            guard !open.account.isOwn(text) else { throw own(text, what) }
            let user: UserID
            do throws(PeopleError) { user = try await verified(text, book) } catch {
                throw Failure(what, people: error, about: text)
            }
            guard !same(user.text, book.user) else { throw own(text, what) }
            if !all.contains(where: { $0.user == user }) { all.append(Receiver(text: text, user: user)) }
        }
        return Receivers(all: all)
    }

    private static func own(_ text: String, _ what: String) -> Failure {
        Failure("\(what): \(Screen.safe(text)) is this account; name other accounts", .usage)
    }

    private static func verified(_ text: String, _ book: KeyBook) async throws(PeopleError) -> UserID {
        let isKnown = try await PeopleCall.contact(text, book) != nil
        guard isKnown || PeopleCall.isID(text) else {
            let keys = try await book.addContact(named: text)
            guard let user = try? UserID(keys.user) else { throw .absent }
            return user
        }
        let user = try await PeopleCall.user(text, book)
        _ = try await book.keys(of: user)
        return user
    }

    /// `a`, `a and b`, `a, b and c`.
    static func list(_ names: [String]) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }
}

extension Account {
    /// Whether a text is the login name of this profile's account.
    func isOwn(_ text: String) -> Bool { profile.user.map { same($0.lowercased(), text.lowercased()) } ?? false }
}

extension OpenTree {
    /// The profile's key book.
    ///
    /// - Parameter what: what is not done without it, as the beginning of a sentence.
    func people(_ what: String) async throws(Failure) -> KeyBook {
        do throws(PeopleError) { return try await client.people() } catch { throw Failure(what, people: error) }
    }
}

extension Failure {
    /// - Parameters:
    ///   - what: what was not done, as the beginning of a sentence.
    ///   - user: the other person, as it was typed; nil: the error is about the log.
    init(_ what: String, people error: PeopleError, about user: String?) {
        let name = Screen.safe(user ?? "")
        let next =
            switch error {
            case .needsConfirmation:
                ". 'thicket verify \(name)' shows the number to compare with that person; with --matches DIGITS it "
                    + "confirms the new keys"
            case .alarm: ". 'thicket keylog' says what was found"
            case .absent:
                ". Is the name right? An account that was made by an older version has keys in the log after its owner "
                    + "has used 'thicket keylog'"
            case .offline: ". These keys were never looked up on this machine"
            case .refused(let error) where error.kind == .notWitnessed:
                ". Ask the witness's operator; 'thicket keylog' looks again, and with --no-witness it goes on without"
            case .refused, .server, .store, .noKeys: ""
            }
        let failure = Failure(user == nil ? what : "\(what): \(name)", people: error)
        self.init(failure.text + next, failure.code)
    }
}
