import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses

@testable import ThicketCLI

/// What machines with newer keys do after an honest restore of the server.
@Suite("thicket keys --restored", .blocking)
struct RestoredCommandTests {
    private let bench: CommandBench
    private let place: [String]
    private static let password = [
        "THICKET_PASSWORD": "canary sesame", "THICKET_NEW_PASSWORD": "canary barley",
    ]

    init() throws {
        bench = try CommandBench()
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
        place = ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? "")]
    }

    private func login(_ home: String) throws {
        try bench.good(["login"] + place + ["--user", "ann"], home: home, variables: Self.password)
    }

    /// The backup has the logins of the machines `home` and `old`, and not that of `late`; all have seen version 4, and
    /// the server has version 2.
    private func restored() throws {
        try bench.good(["signup"] + place + ["--user", "ann"], variables: Self.password)
        let words: [Substring] = try bench.good(["words"]).split { $0 == " " || $0 == "\n" }.filter {
            !$0.hasSuffix(".")
        }
        try bench.write("words", words.joined(separator: " "))
        try bench.good(["put", "--sealed", "notes", "k", "{}"])
        try login("old")
        try Daemon.command(bench.path("data"), ["backup", bench.path("copy.db")], succeeding: true)
        try bench.good(["verify", "--words-file", bench.path("words")])
        try bench.good(["put", "--sealed", "diary", "k", #"{"a":1}"#])
        try login("late")
        // `old` does not know the bucket yet, reads that the account has it, and writes nothing.
        try bench.good(["put", "--sealed", "diary", "o", "{}"], home: "old")
        try bench.stopServer()
        try Daemon.command(bench.path("data"), ["restore", bench.path("copy.db")], succeeding: true)
        try bench.startServer()
    }

    @Test(
        "after a restore machines are stuck and name the command; run on one of them it frees all and loses nothing",
        arguments: ["home", "late"])
    func frees(machine: String) throws {
        try restored()
        for home in ["home", "old"] {
            for words in [
                ["words"], ["login"] + place + ["--user", "ann"], ["verify", "--words-file", bench.path("words")],
            ] {
                let reported = try bench.run(words, home: home, variables: Self.password)
                #expect(reported.code == 1, "\(home) \(words): \(reported)")
                #expect(
                    reported.errors.contains(
                        "the server shows version 2 of the account's keys, which is older than version 4"),
                    "\(reported)")
                #expect(reported.errors.contains("'thicket keys --restored'"), "\(reported)")
            }
        }
        // A machine that has seen nothing adds a bucket meanwhile.
        try login("fresh")
        try bench.good(["put", "--sealed", "recipes", "k", "{}"], home: "fresh")

        let back = try bench.run(
            ["keys", "--restored"], home: machine, variables: machine == "late" ? Self.password : [:])
        #expect(back.code == 0, "\(back)")
        #expect(back.output.hasPrefix("the keys are put back, as version 5;"), "\(back)")
        #expect(back.errors.hasPrefix("This writes the account's keys, as this machine has seen them last"), "\(back)")
        #expect(back.errors.contains("the login of this machine") == (machine == "late"), "\(back)")
        #expect(!back.errors.contains("reminder"), "that the words were confirmed is known again")
        for home in ["home", "old", "fresh"] {
            let words = try bench.run(["words"], home: home)
            #expect(words.code == 0 && !words.errors.contains("warning"), "\(home): \(words)")
        }
        let again = try bench.good(["keys", "--restored"], home: "old")
        #expect(again == "the server has these keys, or newer ones; nothing was written\n")
        try bench.good(["passwd"], home: "old", variables: Self.password)
        // Only the account's keys say which buckets are sealed.
        let barley = ["THICKET_PASSWORD": "canary barley"]
        try bench.good(["login"] + place + ["--user", "ann"], home: "new", variables: barley)
        for bucket in ["notes", "diary", "recipes"] {
            try bench.good(["put", bucket, "n", "{}"], home: "new")
            let stored: [Substring] = try bench.good(["audit", bucket], home: "new").split(separator: "\n").filter {
                $0.hasPrefix("  server")
            }
            #expect(!stored.isEmpty && stored.allSatisfy { $0.contains(#": {"z":1,"s":"#) }, "\(bucket): \(stored)")
        }
    }

    @Test("recover says that the password is set, and a wrong password is answered with the password that counts")
    func recovers() throws {
        try restored()
        let reported = try bench.run(
            ["recover", "--words-file", bench.path("words")] + place + ["--user", "ann"], variables: Self.password)
        #expect(reported.code == 1 && reported.errors.contains("the new password is set"), "\(reported)")
        #expect(
            reported.errors.contains("older than version 4") && reported.errors.contains("'thicket keys --restored'"))
        #expect(!reported.errors.contains("nothing was recovered"), "\(reported)")
        let wrong = try bench.run(["keys", "--restored"], variables: Self.password)
        #expect(wrong.code == 6 && wrong.errors.contains("from the time of the backup"), "\(wrong)")
        #expect(wrong.errors.contains("the password is wrong") && !wrong.errors.contains("Use the new one"), "\(wrong)")
        let barley = ["THICKET_PASSWORD": "canary barley"]
        let back = try bench.good(["keys", "--restored"], variables: barley)
        #expect(back.hasPrefix("the keys are put back, as version 5;"))
    }

    @Test("a login that may not write leaves the account's keys alone, and prints no warning")
    func readOnly() throws {
        try bench.good(["signup"] + place + ["--user", "ann"], variables: Self.password)
        try login("old")
        try bench.good(["put", "--sealed", "diary", "k", "{}"], home: "old")
        let audit: [Substring] = try bench.good(["audit"], home: "old").split { $0 == " " || $0 == "\n" }
        let place: Int = try #require(audit.firstIndex(of: "id"))
        let token = try Daemon.command(
            bench.path("data"),
            ["token", "create", "--app", "notes", "--user", String(audit[place + 1]), "--read-only"],
            succeeding: true
        ).output
        try bench.write("token", token)
        try bench.good(["login", "--token-file", bench.path("token")])
        for _ in 0..<2 {
            let read = try bench.run(["get", "--sealed", "diary", "k", "--json"])
            #expect(read.code == 0 && read.output == "{}\n" && read.errors.isEmpty, "\(read)")
        }
    }

    @Test("an error that may follow a write says so; keys that went back meanwhile are no reason to do it again")
    func errors() {
        let again: [AccountError] = [
            .busy, .unusable("too many"), .bundleMissing, .otherAccount, .server(ClientError(.network, "away")),
            .server(ClientError(.unauthorized, "locked", number: 403)),
        ]
        for error in again {
            let text = RestoredKeys.failure(error).text
            #expect(text.hasPrefix("the keys were not put back, or not all the way; do it again"), "\(text)")
        }
        for error: AccountError in [.rolledBack(seen: 5, shown: 4), .rolledBack(seen: 5, shown: 5)] {
            let text = RestoredKeys.failure(error).text
            #expect(text.hasPrefix("the keys were not put back, or not all the way: "), "\(text)")
            #expect(
                text.contains("ask the server's operator before you continue") && !text.contains("--restored"),
                "\(text)")
        }
        let closed = RestoredKeys.failure(.doesNotOpen).text
        #expect(closed.contains("after that backup") && closed.contains("since the restore"), "\(closed)")
        let wrong = RestoredKeys.loginFailure(.wrongPassword(isChanged: true)).text
        #expect(wrong.contains("from the time of the backup") && !wrong.contains("Use the new one"), "\(wrong)")
    }

    @Test("keys --restored accepts no other option, and does nothing with a server that shows other keys or none")
    func refused() throws {
        try bench.good(["signup"] + place + ["--user", "ann"], variables: Self.password)
        for other in [["--make"], ["--no-passphrase"], ["--words-file", "w"]] {
            let reported = try bench.run(["keys", "--restored"] + other)
            #expect(reported.code == 2 && reported.errors.contains("leave \(other[0]) out"), "\(reported)")
        }
        let plain = try bench.run(["keys"])
        #expect(plain.code == 2 && plain.errors.contains("users of partners"), "\(plain)")
        try Daemon.command(bench.path("data"), ["backup", bench.path("copy.db")], succeeding: true)
        try bench.good(["words", "--renew"], variables: Self.password)
        try bench.stopServer()
        let offline = try bench.run(["keys", "--restored"])
        #expect(offline.code == 5 && offline.errors.contains("or not all the way; do it again"), "\(offline)")
        try Daemon.command(bench.path("data"), ["restore", bench.path("copy.db")], succeeding: true)
        try bench.startServer()
        let reported = try bench.run(["keys", "--restored"])
        #expect(
            reported.code == 1 && reported.errors.contains("cannot be opened with the keys of this account"),
            "\(reported)")
        #expect(reported.errors.contains("'thicket recover' with the older words"), "\(reported)")
        #expect(!reported.output.contains("put back"), "\(reported)")
    }
}
