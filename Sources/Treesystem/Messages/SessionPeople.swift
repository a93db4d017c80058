import ThicketClient
internal import ThicketKeyLog
import ThicketProtocol

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
