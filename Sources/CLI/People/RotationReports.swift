import Synchronization
import ThicketClient
import ThicketCommandLine
import ThicketKeyLog

/// Other people's new keys that their old ones have signed: nothing is to be done, and each is printed once, at the end
/// of the command that has seen it.
final class RotationReports: Sendable {
    /// Most lines that one command prints.
    static let linesMax = 20

    private let users = Mutex([String]())

    /// Collects what a key book reports until it is closed.
    func follow(_ events: AsyncStream<PeopleEvent>) -> Task<Void, Never> {
        Task {
            for await event in events {
                guard case .rotated(_, let keys) = event, !Self.isHandle(keys.user) else { continue }
                users.withLock { users in
                    if users.count < Self.linesMax, !users.contains(keys.user) { users.append(keys.user) }
                }
            }
        }
    }

    /// An account that is looked up by its name has two entries: one for the name, which says nothing to a person.
    static func isHandle(_ user: String) -> Bool { user.utf8.starts(with: KeyLogHandle.prefix.utf8) }

    /// Prints the lines on standard error.
    func report(_ contacts: [Contact]) {
        for user in users.withLock({ $0 }) { Terminal.writeError("thicket: \(Self.line(user, contacts))\n") }
    }

    static func line(_ user: String, _ contacts: [Contact]) -> String {
        let name = Screen.safe(contacts.first { same($0.user, user) }?.name ?? user)
        return "\(name) has new keys, and the ones before have signed them; 'thicket verify \(name)' shows the number"
    }
}
