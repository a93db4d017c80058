import ThicketClient
import ThicketCommandLine
import ThicketPlatform
import ThicketProtocol

/// One call of a command about other people's keys: a session with the profile's key book.
enum PeopleCall {
    /// The key book is in the profile's folder (`keys.people`), shared by all commands of the profile.
    static func run<Value: Sendable>(
        _ call: Call, _ what: String, _ body: @Sendable (KeyBook) async throws(PeopleError) -> Value
    ) async throws(Failure) -> Value {
        let keys = try KeyCall(call, what)
        let account = try keys.open()
        let session = try await trying(what) { () throws(ClientError) in
            try await keys.account.peopleSession(account)
        }
        let rotations = RotationReports()
        let (contacts, follower): ([Contact], Task<Void, Never>)
        let result: Result<Value, PeopleError>
        do throws(PeopleError) {
            let book = try await session.people()
            follower = rotations.follow(await book.events)
            await book.checkOwnAtStart()
            do throws(PeopleError) { result = .success(try await body(book)) } catch { result = .failure(error) }
            contacts = ((try? await book.contacts()) ?? []).map(\.contact)
        } catch {
            await session.close()
            throw Failure(what, people: error)
        }
        keys.keepNewer(session.account)
        await session.close()
        await follower.value
        rotations.report(contacts)
        do throws(PeopleError) { return try result.get() } catch { throw Failure(what, people: error) }
    }

    /// A user's id for an argument that is a contact's name, a login name, or an id.
    static func user(_ text: String, _ book: KeyBook) async throws(PeopleError) -> UserID {
        if let known = try await contact(text, book), let id = try? UserID(known.user) { return id }
        let keys = isID(text) ? nil : try await book.keys(named: text)
        guard let id = try? UserID(keys?.user ?? text) else { throw .absent }
        return id
    }

    /// The contact with this name or id.
    static func contact(_ text: String, _ book: KeyBook) async throws(PeopleError) -> Contact? {
        try await book.contacts().first {
            same($0.contact.user, text) || $0.contact.name.map { same($0.lowercased(), text.lowercased()) } ?? false
        }?.contact
    }

    /// Whether a text is an account's id, and no login name: 32 hexadecimal digits, or a partner's user in 8-4-4-4-12.
    static func isID(_ text: String) -> Bool {
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        guard groups.allSatisfy({ $0.allSatisfy { $0.isASCII && $0.isHexDigit } }) else { return false }
        return groups.map(\.count) == [32] || groups.map(\.count) == [8, 4, 4, 4, 12]
    }
}

extension Account {
    /// A session that syncs nothing, with the account's keys and the profile's key book.
    func peopleSession(_ opened: OpenAccount) async throws(ClientError) -> ClientSession {
        let session = try await session(store: .memory, isOnline: false)
        do throws(ClientError) { try await session.useKeys(of: opened) } catch {
            await session.close()
            throw error
        }
        return session
    }
}

extension Failure {
    /// - Parameter what: what was not done, as the beginning of a sentence.
    init(_ what: String, people error: PeopleError) {
        let code: ExitCode =
            switch error {
            case .absent: .notFound
            case .needsConfirmation, .alarm: .alarm
            case .refused: .failure
            case .offline(let error), .server(let error), .store(let error): Failure.code(error)
            case .noKeys: .unauthorized
            }
        self.init("\(what): \(error.description) [\(error.code)]", code)
    }
}
