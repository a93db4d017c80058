import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketThreats

/// Names, contents, metadata and thumbnails of a tree, searched for everywhere but where the user wrote them.
@Suite("Secrets of trees in stored data, logs and files", .blocking, .timeLimit(.minutes(10)))
struct TreeLeakTests {
    /// What a user writes.
    private static let kinds = [
        "container", "name", "new name", "small content", "large content", "waiting content", "pair", "metadata",
        "thumbnail", "attachment", "attached name", "title", "wrong name",
    ]

    @Test("A21: no name, content, pair, thumbnail or attachment of a tree is in stored data, logs, metrics or files")
    func canaries() throws {
        let house = try ThreatHouse("tree-leaks", ["--log-level", "debug"])
        let ann = TreeRun(house, "tree-leaks-home")
        let words = Dictionary(uniqueKeysWithValues: Self.kinds.map { ($0, "canary\(RandomBytes.hex(10))") })
        func word(_ kind: String) -> String { words[kind] ?? "" }
        try ann.signUp()
        try ann.signUp("login", home: "two")
        try ann.shell("mkdir in out && yes \(word("large content")) | head -c 300000 > in/large")
        try ann.shell("echo \(word("small content")) > in/small && echo \(word("waiting content")) > in/waits")
        try ann.run(["tree", "put", "-p", ann.path("in/small"), "\(word("container"))/\(word("name"))"])
        try ann.run(["tree", "put", ann.path("in/large"), "\(word("container"))/large"])
        try ann.run(["tree", "mv", "\(word("container"))/\(word("name"))", "\(word("container"))/\(word("new name"))"])
        try extras(ann, word)
        try ann.run(["onions", "new"], input: "\(word("title"))\ntext")
        try ann.shell("echo \(word("attachment")) > 'in/\(word("attached name"))'")
        try ann.run(["onions", "attach", "1", ann.path("in/\(word("attached name"))")])
        // A second machine reads all of it; commands fail with names of users.
        try ann.run(["tree", "get", "-r", "home", ann.path("out/home")], home: "two")
        try ann.run(["tree", "pull", "--content"], home: "two")
        try ann.run(["tree", "cat", word("wrong name")], home: "two", codes: [3])
        try ann.run(["tree", "rm", "\(word("container"))/\(word("new name"))"])
        try ann.run(["tree", "put", "--offline", ann.path("in/waits"), "\(word("container"))/waits"])

        var places = ThreatHouse.files(house.folder.path) + ["one", "two"].flatMap { ThreatHouse.files(ann.path($0)) }
        for part in ["thicket.db", "blob", "/one/", "/two/", ".files/"] {
            #expect(places.contains { $0.path.contains(part) && !$0.bytes.isEmpty }, "\(part) was not searched")
        }
        places += places.map { ("the path of a file", Array($0.path.utf8)) }
        places.append(("/metrics", try house.caller().ask("GET", "/metrics").body))
        house.daemon.process.signal(SIGTERM)
        let end = try house.daemon.process.finish()
        #expect(end.errors.contains("level=debug"), "the log was not recorded")
        places += [("log", Array(end.errors.utf8)), ("standard output", Array(end.output.utf8))]
        let search = CanarySearch(words.map { Canary($0.key, $0.value) })
        for place in places {
            let found = search.findings(in: place.bytes, place: place.path)
            #expect(found.isEmpty, "\(found)")
        }
        // Counterproof: the same search finds each of them where the user wrote or read it.
        let clear = ThreatHouse.files(ann.path("in")) + ThreatHouse.files(ann.path("out"))
        let written = [
            "container", "new name", "small content", "large content", "attachment", "waiting content", "pair",
        ]
        for kind in written {
            let one = CanarySearch([Canary(kind, word(kind))])
            let isFound = clear.contains { !one.found(in: $0.bytes + Array($0.path.utf8)).isEmpty }
            #expect(isFound, "\(kind) is not even where the user put it")
        }
    }

    /// Pairs, metadata and a thumbnail, which an import brings.
    private func extras(_ ann: TreeRun, _ word: (String) -> String) throws {
        func encoded(_ kind: String) -> String { Base64.encodeURL(Array(word(kind).utf8)) }
        let meta =
            #"{"pairs":[["\#(word("pair"))","\#(encoded("pair"))"]],"metadata":"\#(encoded("metadata"))","#
            + #""thumbnail":"\#(encoded("thumbnail"))"}"#
        try ann.shell(
            "mkdir -p in/plain/home && echo '{\"format\":1}' > in/plain/thicket-tree.json && cp in/large in/plain/home/p"
                + " && echo '\(meta)' > in/plain/home/p%meta")
        try ann.run(["tree", "import", ann.path("in/plain")])
    }
}
