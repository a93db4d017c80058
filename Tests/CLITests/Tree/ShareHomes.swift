import Testing
import ThicketProcesses
import ThicketProtocol

/// A real server with the accounts `ann`, `ben` and `cem`, each with a home of its name.
final class ShareHomes {
    let bench: CommandBench
    private let place: [String]

    init() throws {
        bench = try CommandBench()
        place = try bench.appWords()
        for name in ["ann", "ben", "cem"] { try enter("signup", name, home: name) }
    }

    /// Another machine of an account.
    func login(_ user: String, home: String) throws { try enter("login", user, home: home) }

    private func enter(_ command: String, _ user: String, home: String) throws {
        try bench.enter(command, user, home: home, at: place)
    }

    @discardableResult
    func good(_ user: String, _ words: String...) throws -> String {
        try bench.good(["tree"] + words, home: user)
    }

    func run(_ user: String, _ words: String...) throws -> ChildProcess.Outcome {
        try bench.run(["tree"] + words, home: user)
    }

    /// Runs a line of shell in the folder of the test, and expects success.
    func shell(_ line: String) throws {
        let outcome = try ChildProcess.run(
            ["/bin/bash", "-c", "cd \"$0\" && \(line)", bench.place.path], input: "", variables: [:])
        guard outcome.code == 0 else { throw ProcessError("\(line): \(outcome)") }
    }

    /// Puts a text into the tree of an account.
    func put(_ text: String, _ path: String, as user: String, _ more: String...) throws {
        try bench.write("text", text)
        try bench.good(["tree", "put", bench.path("text"), path] + more, home: user)
    }

    /// Ann's album with a text and a file of some MiB; ben may write, cem has these letters. Both have accepted.
    func shareAlbum(cem letters: String = "r") throws {
        try shell("head -c 3M /dev/urandom > film")
        try good("ann", "mkdir", "album")
        try put("one\n", "album/photo", as: "ann")
        try good("ann", "put", bench.path("film"), "album/")
        for user in ["ben", "cem"] { try bench.good(["contacts", "add", "ann"], home: user) }
        let shared = try good("ann", "share", "album", "ben:rw", "cem:\(letters)")
        #expect(shared == "home/album is shared with ben (rw) and cem (\(letters))\n")
        #expect(try good("ann", "invite", "album", "ben", "cem") == "ben and cem are invited to home/album\n")
        let accepted = try good("ben", "accept")
        #expect(accepted == "home/album is the branch 'album' of ann\n", "\(accepted)")
        try good("cem", "accept", "--at", "from-ann")
    }
}
