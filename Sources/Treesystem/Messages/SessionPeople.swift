import ThicketClient
internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree

/// Keys of other accounts for a tree, from the session's key book, which is opened at the first question.
struct SessionPeople: PeopleLookUp {
    let session: ClientSession

    func answer(_ question: KeyQuestion) async -> KeyAnswer {
        do throws(PeopleError) {
            let book = try await session.people()
            guard let keys = try await Self.keys(question, book) else { return .failed(.absent) }
            return .found(keys, await book.newestHead())
        } catch { return .failed(Self.trouble(error)) }
    }

    func heard(_ head: KeyLogHead, from user: UserID) async {
        // A book that cannot be opened has no head to compare with.
        await (try? session.people())?.heard(head, from: user)
    }

    func renewed() async -> MessageIdentity? {
        // A check reads the newest bundle, which the session uses from then on, and completes the key log from it.
        guard let book = try? await session.people() else { return nil }
        do throws(PeopleError) { try await book.renew() } catch { return nil }
        return session.messageIdentity
    }

    private static func keys(_ question: KeyQuestion, _ book: KeyBook) async throws(PeopleError) -> PublicKeys? {
        guard let id = question.keyID else { return try await book.keys(of: question.user) }
        return try await book.earlierKeys(of: question.user, id: id)
    }

    /// What is not an answer about the account is asked again.
    private static func trouble(_ error: PeopleError) -> KeyTrouble {
        switch error {
        case .needsConfirmation: .needsConfirmation
        case .alarm: .alarm
        case .absent: .absent
        case .refused(let error) where error.kind == .notWitnessed: .notWitnessed
        case .refused, .offline, .server, .store, .noKeys: .offline
        }
    }
}

extension ClientSession {
    /// The account's keys for messages, as the session has them; nil while it has none.
    var messageIdentity: MessageIdentity? {
        guard let keys = sync.messageKeys, let user = try? UserID(keys.user) else { return nil }
        return MessageIdentity(
            user: user, signing: keys.current.signing, exchange: keys.current.exchange,
            earlier: keys.earlier.map { ($0.signing, $0.exchange) })
    }
}
