import Glibc
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketServerProcess
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Accounts among each other: the key log, sign-ups, messages, and a large file to many people. Each has its peer in
/// the same run where there is one.
///
/// `THICKET_PEOPLE_PART` names one part, for a profile; `THICKET_PEOPLE_USERS` the users of the log.
func people() async throws -> [Figure] {
    let parts: [(name: String, run: () async throws -> [Figure])] = [
        ("log", { try keyLogLookUps(users: try usersOfLog()) }),
        ("signups", { try signUpsBeside() }),
        ("messages", { try await messagesBeside(count: 90) }),
        ("share", { try await shareBranch(nodes: 10_000) }),
        ("file", { try await fileToMany(mebibytes: 50, people: 10) }),
    ]
    let wanted = getenv("THICKET_PEOPLE_PART").map { String(cString: $0) }
    var figures = [Figure]()
    for part in parts where wanted == nil || wanted == part.name {
        figures += try await part.run()
        progress("people: \(part.name) is measured")
    }
    return figures
}

private func usersOfLog() throws -> Int {
    guard let text = getenv("THICKET_PEOPLE_USERS") else { return 1_000_000 }
    guard let count = Int(String(cString: text)), 1_000...10_000_000 ~= count else {
        throw BenchError(
            "THICKET_PEOPLE_USERS is \"\(String(cString: text))\": a number from 1000 to 10000000 is needed")
    }
    return count
}

/// A server with an app of built-in accounts.
final class PeopleStand {
    let process: ServerProcess
    let apiKey: String

    init(settings: [String] = []) throws {
        process = try ServerProcess(settings: settings)
        let made = try process.admin(["app", "create", BenchServer.app])
        let words = made.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard let place = words.firstIndex(of: "key"), words.indices.contains(place + 1) else {
            throw BenchError("no API key: \(made)")
        }
        apiKey = String(words[place + 1])
        try process.start()
    }

    /// A person with an account, and a device of it.
    struct Person {
        let desk: TreeDesk
        let user: UserID
    }

    /// Signs a person up.
    func person(_ name: String) async throws -> Person {
        let app = try ThicketApp(
            server: process.address, app: BenchServer.app, apiKey: apiKey,
            store: .file("\(process.folder)/\(name).client"), deviceId: name)
        let signed = try await app.accounts().signUp(
            name: name, password: SecureBytes(copying: Array("a long enough password of \(name)".utf8)))
        let session = try await app.resume(signed)
        return Person(
            desk: TreeDesk(session: session, tree: try await session.tree()), user: try UserID(signed.account.user))
    }

    /// The sum of a counter of the server over all labels that contain a text.
    func metric(_ name: String, label: String = "") throws -> Int {
        var sum = 0
        for line in try HostileTenant.metrics(port: process.port).split(whereSeparator: \.isNewline)
        where line.hasPrefix(name + " ") || line.hasPrefix(name + "{") && line.contains(label) {
            sum += line.split(separator: " ").last.flatMap { Int($0) } ?? 0
        }
        return sum
    }
}
