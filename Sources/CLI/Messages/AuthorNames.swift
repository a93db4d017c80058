import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// Names of other accounts, as this machine knows them.
struct AuthorNames: Sendable {
    private var known = [String: (name: String?, standing: KeyBook.Standing)]()

    /// - Throws: when the key book cannot be read.
    init(_ open: OpenTree) async throws(Failure) {
        let what = "the contacts cannot be read"
        let book = try await open.people(what)
        do throws(PeopleError) {
            for each in try await book.contacts() { known[each.contact.user] = (each.contact.name, each.standing) }
        } catch { throw Failure(what, people: error) }
    }

    /// The login name of a contact, or the id.
    func name(of user: UserID) -> String { known[user.text]?.name ?? user.text }

    /// How sure it is that an author of verified messages is the person of that name.
    func standing(of user: UserID) -> String {
        known[user.text]?.standing == .compared ? "compared" : "verified"
    }
}
