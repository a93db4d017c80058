import ThicketClient
import ThicketProtocol
import WhatsZapp

/// The names of people, as the user knows them: contacts of this machine, found by the key log.
struct PersonNames: Sendable {
    private let names: [String: String]
    private let people: [String: UserID]

    init(_ session: ClientSession) async {
        let contacts = ((try? await session.people().contacts()) ?? []).map(\.contact)
        var (names, people) = ([String: String](), [String: UserID]())
        for contact in contacts {
            guard let name = contact.name, let person = try? UserID(contact.user) else { continue }
            (names[contact.user], people[name]) = (name, person)
        }
        (self.names, self.people) = (names, people)
    }

    /// The account of a contact's name.
    func person(_ name: String) -> UserID? { people[name] }

    /// A contact's name; of another person the name that its messages give, which is not verified, with a question
    /// mark; otherwise the account's id.
    func name(of conversation: Conversation) -> String {
        names[conversation.id] ?? conversation.name.map { "\($0)?" } ?? conversation.id
    }
}
