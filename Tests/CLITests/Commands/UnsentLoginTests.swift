import Testing
import ThicketBlocking
import ThicketProcesses

/// What logins report when nothing, or not the password, is sent.
@Suite("thicket: what a login reports about what is sent", .blocking)
struct UnsentLoginTests {
    private static let words = Array(repeating: "abandon", count: 23).joined(separator: " ") + " art"

    /// A login at a server that does not exist.
    private func run(_ command: [String], server: String) throws -> ChildProcess.Outcome {
        let place = TemporaryFolder("unsent")
        let all = command + ["--server", server, "--app", "notes", "--api-key", "0123", "--user", "ann"]
        return try ChildProcess.run(
            [Programs.thicket] + all, input: Self.words,
            variables: [
                "THICKET_HOME": place.path + "/home", "SWIFT_BACKTRACE": "enable=no", "THICKET_PASSWORD": "sesame",
                "THICKET_NEW_PASSWORD": "barley",
            ])
    }

    /// Nothing listens at port 1, and no name ends like this (RFC 6761).
    private static let servers = ["http://127.0.0.1:1", "http://nobody.invalid"]

    @Test(
        "when no server could be asked nothing is called unknown: the message names the server or its address",
        arguments: servers)
    func unreached(server: String) throws {
        for command in [["signup"], ["recover", "--words-file", "-"]] {
            let reported = try run(command, server: server)
            #expect(
                reported.code == 5 && reported.errors.contains("Is the server running, and the address right?"),
                "\(reported)")
            #expect(!reported.errors.contains("not known"), "\(reported)")
        }
    }

    @Test("without https the message says what others can read: the password only where it is sent")
    func readable() throws {
        // This machine, under an address that does not show it.
        let server = "http://0.0.0.0:1"
        for command in [["signup"], ["login"], ["recover", "--words-file", "-"]] {
            let reported = try run(command, server: server)
            #expect(reported.errors.contains("is not https") && reported.errors.contains("are not sent"), "\(reported)")
            #expect(!reported.errors.contains("can read the password"), "\(reported)")
        }
        for command in ["signup", "login"] {
            let reported = try run([command, "--sent-password"], server: server)
            #expect(reported.errors.contains("can read the password, and everything else"), "\(reported)")
        }
    }
}
