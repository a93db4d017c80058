import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketProcesses
import ThicketThreats

/// The files that the program leaves on its machine.
@Suite("Files of a client", .blocking)
struct ClientFilesTests {
    private static func words(_ name: String) -> (canary: Canary, text: String) {
        let text = "canary-\(RandomBytes.hex(12))"
        return (Canary(name, text), text)
    }

    @Test(
        "T2: after a life with thicket no file has content, a password, a token or an object name, in any spelling"
    )
    func lifecycle() throws {
        let house = try ThreatHouse("client-files")
        let home = TemporaryFolder("client-home")
        let words = Dictionary(
            uniqueKeysWithValues: ["title", "text", "edit", "offline", "removed", "password", "key", "user"].map {
                ($0, Self.words("the \($0)"))
            })
        func word(_ name: String) -> String { words[name]?.text ?? "" }
        func run(_ call: [String], code: Int32 = 0) throws -> String {
            let outcome = try ChildProcess.run(
                [Programs.thicket] + call,
                variables: [
                    "HOME": home.path, "THICKET_HOME": home.path + "/thicket", "TMPDIR": home.path,
                    "XDG_RUNTIME_DIR": "", "THICKET_PASSWORD": word("password"), "SWIFT_BACKTRACE": "enable=no",
                    "THICKET_PASSPHRASE": "four green leaves", "THICKET_CHEAP_PASSPHRASES": "1",
                ])
            guard outcome.code == code else { throw ProcessError("thicket \(call): \(outcome)") }
            return outcome.output
        }
        let user = "\(word("user"))@example.com"
        _ = try run([
            "signup", "--server", "http://127.0.0.1:\(house.port)", "--app", ThreatHouse.app, "--api-key", house.apiKey,
            "--user", user, "--sent-password",
        ])
        let token = String(try run(["token", "print"]).dropLast())
        let object = #"{"title":"\#(word("title"))","text":"\#(word("text"))"}"#
        _ = try run(["put", "notes", word("key"), object])
        _ = try run(["put", "notes", word("key"), #"{"title":"\#(word("edit"))"}"#])
        _ = try run(["put", "notes", "gone", #"{"title":"\#(word("removed"))"}"#])
        _ = try run(["rm", "notes", "gone"])
        _ = try run(["put", "notes", "waits", #"{"title":"\#(word("offline"))"}"#, "--offline"])
        #expect(try run(["get", "notes", "waits", "--offline"]).contains(word("offline")), "it is kept")

        let search = CanarySearch(
            words.values.map(\.canary) + [Canary("the token", token), Canary("the API key", house.apiKey)])
        let server = ThreatHouse.files(house.folder.path).map { String(decoding: $0.bytes, as: UTF8.self) }
            .joined()
        #expect(server.contains(word("title")), "an open bucket's server has it: what is searched for is what was sent")
        for state in ["open", "locked", "unlocked"] {
            if state == "locked" { _ = try run(["lock"]) }
            if state == "unlocked" { _ = try run(["unlock"]) }
            let files = ThreatHouse.files(home.path)
            #expect(files.contains { $0.path.hasSuffix("notes.db") && $0.bytes.count > 4_096 }, "\(files.map(\.path))")
            for file in files {
                #expect(search.findings(in: file.bytes, place: "\(file.path), \(state)").isEmpty)
                #expect(search.findings(in: Array(file.path.utf8), place: "a file's name").isEmpty)
            }
        }
        #expect(try run(["get", "notes", "waits", "--path", "title"]) == word("offline") + "\n")
    }
}
