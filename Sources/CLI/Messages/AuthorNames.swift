import ThicketClient
import ThicketCommandLine
import ThicketProtocol
import ThicketTreesystem

/// Names of other accounts, as this machine knows them.
struct AuthorNames: Sendable {
    /// Authors whose names are looked up in one command at most; others are shown by their ids.
    private static let lookUpsMax = 20

    private var known = [String: (name: String?, standing: KeyBook.Standing)]()

    /// - Throws: when the key book cannot be read.
    init(_ open: OpenTree) async throws(Failure) {
        let what = "the contacts cannot be read"
        let book = try await open.people(what)
        do throws(PeopleError) {
            for each in try await book.contacts() { known[each.contact.user] = (each.contact.name, each.standing) }
        } catch { throw Failure(what, people: error) }
    }

    /// Names that the key log has proved, of authors who are no contacts.
    private var proved = [String: String]()

    /// Looks up the names that authors of messages say they have. One whose look-up gives other keys, or none, is not
    /// shown.
    mutating func prove(_ nodes: [Node], _ open: OpenTree) async throws(Failure) {
        try await prove(
            nodes.compactMap { node in
                guard let origin = node.origin, let name = origin.name else { return nil }
                return (origin.author, name)
            }, open)
    }

    /// Looks up names that accounts are said to have.
    mutating func prove(_ names: [(user: UserID, name: String)], _ open: OpenTree) async throws(Failure) {
        let book = try await open.people("the contacts cannot be read")
        var said = [String: String]()
        for (user, name) in names where said.count < Self.lookUpsMax {
            // A name that looks like an id, or like a standing, would pass for another account's.
            guard !PeopleCall.isID(name), !name.contains("("), known[user.text] == nil, proved[user.text] == nil else {
                continue
            }
            said[user.text] = name
        }
        for (user, name) in said {
            if let keys = try? await book.keys(named: name), same(keys.user, user) { proved[user] = name }
        }
    }

    /// The login name of a contact, or one that the key log has proved; otherwise the id.
    ///
    /// A guest has no other name than its link, whatever a server or a contact says: the reserved beginning of its id
    /// decides.
    func name(of user: UserID) -> String {
        if user.isGuest { return Self.guest(user) }
        return known[user.text]?.name ?? proved[user.text] ?? user.text
    }

    /// A guest as people see it.
    static func guest(_ user: UserID) -> String { "guest (link \(link(of: user)))" }

    /// The beginning of the digits of a guest's id, by which people distinguish links.
    static func link(of guest: UserID) -> String { String(guest.text.dropFirst(GuestName.prefix.count).prefix(8)) }

    /// A name that the key log has proved of an account that is no contact.
    func provedName(of user: UserID) -> String? { known[user.text] == nil ? proved[user.text] : nil }

    /// How sure it is that an author of verified messages is the person of that name; `request` for an author who is no
    /// contact.
    func standing(of user: UserID) -> String {
        if user.isGuest { return Self.unverified }
        return switch known[user.text]?.standing {
        case nil: Self.request
        case .compared: "compared"
        case .rotated: "rotated"
        default: "verified"
        }
    }

    static let request = "request"
    /// Of guests: only the possession of a link is proved.
    static let unverified = "not verified"
}
