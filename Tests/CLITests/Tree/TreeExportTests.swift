import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol
import ThicketTree
import ThicketTestSupport

@testable import ThicketCLI

/// A tree as a plain folder, and back.
@Suite("thicket tree: export and import", .blocking)
struct TreeExportTests {
    @Test("an exported tree is read back exactly by another account: names, contents, times, nodes with both")
    func roundTrip() throws {
        let homes = try TreeHomes()
        let names = [
            "plain.md", "a\\/b", "100%", "two\nlines", ".", "..", "x%meta", "y%name", "%content", "%~00",
            ".thicket-x", String(repeating: "%", count: 200), String(repeating: "\u{1F332}", count: 63),
        ]
        for name in names {
            let outcome = try homes.run("put", "-", "home/" + name, input: "content of \(name)")
            #expect(outcome.code == 0, "\(outcome)")
        }
        try homes.tree("mkdir", "-p", "prefs/some/deep", "empty")
        _ = try homes.run("put", "-", "plain.md/below", input: "below a node with content")
        try homes.shell("head -c 50000 /dev/urandom > large && touch -d '2001-02-03 04:05:06.789' large")
        try homes.tree("put", homes.path("large"), "plain.md/large")

        let exported = try homes.tree("export", homes.path("out"))
        #expect(exported.hasPrefix("15 files: 15 written, 0 the same already, to \(homes.path("out")), in clear"))
        #expect(try homes.tree("export", homes.path("out")).hasPrefix("15 files: 0 written, 15 the same already"))
        let bob = Array(homes.ann.dropLast()) + ["bob"]
        try homes.bench.good(["signup"] + bob, home: "bob", variables: TreeHomes.password)
        #expect(try homes.tree("import", homes.path("out"), home: "bob") == "15 files: 15 sent, 0 as they were\n")
        #expect(try homes.tree("import", homes.path("out"), home: "bob") == "15 files: 0 sent, 15 as they were\n")
        try homes.tree("export", homes.path("again"), home: "bob")
        try homes.shell("diff -r out again")
        for trunk in ["home", "prefs"] {
            #expect(try homes.tree("find", trunk, home: "bob") == homes.tree("find", trunk))
        }
        #expect(try homes.tree("cat", "home/..", home: "bob") == "content of ..")
        try homes.tree("get", "plain.md/large", homes.path("copy"), home: "bob")
        #expect(try homes.shell("cmp large copy && date -r copy -u +%s.%3N") == "981173106.789\n")
    }

    @Test("a branch is exported with the way to it, and import leaves everything else of the tree as it is")
    func branch() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "one")
        try homes.tree("put", "-p", homes.path("f"), "a/b/f")
        try homes.tree("put", homes.path("f"), "a/not")
        try homes.tree("export", homes.path("out"), "a/b")
        #expect(homes.bench.read("out/home/a/b/f") == "one" && !homes.bench.exists("out/home/a/not"))
        try homes.bench.write("out/home/a/b/f", "changed")
        #expect(try homes.tree("import", homes.path("out")) == "1 file: 1 sent, 0 as they were\n")
        #expect(try homes.tree("cat", "a/b/f", "a/not") == "changedone")
    }

    @Test("pairs, metadata, thumbnails and burn times are exported beside their files, and an import brings them back")
    func extrasRoundTrip() throws {
        let homes = try TreeHomes()
        try homes.bench.write("in.txt", "first")
        try homes.shell("head -c 200000 /dev/urandom > large && mkdir -p plain/home/both")
        try homes.bench.write("plain/thicket-tree.json", #"{"format":1}"#)
        var extras = NodeExtras()
        extras.tags = [try #require(NodeMetadata.AppTag("colour", [7, 0, 255]))]
        (extras.metadata, extras.thumbnail) = ([1, 2, 3], [UInt8](repeating: 9, count: 3_000))
        extras.burnTime = 32_503_680_000_000
        let text = String(decoding: extras.json, as: UTF8.self)
        try homes.shell("cp in.txt plain/home/small && cp large plain/home/large && cp large plain/home/both/%content")
        for name in ["small%meta", "large%meta", "both/%meta"] { try homes.bench.write("plain/home/" + name, text) }
        #expect(try homes.tree("import", homes.path("plain")) == "3 files: 3 sent, 0 as they were\n")
        #expect(try homes.tree("import", homes.path("plain")) == "3 files: 0 sent, 3 as they were\n")
        // The other machine has none of it.
        try homes.tree("export", homes.path("out"), home: "other")
        for name in ["small%meta", "large%meta", "both%meta"] {
            let written = homes.bench.read("out/home/" + name).flatMap { NodeExtras(json: Array($0.utf8)) }
            let found = try #require(written, "\(name)")
            #expect(found.tags == extras.tags && found.metadata == extras.metadata, "\(name)")
            #expect(found.thumbnail == extras.thumbnail && found.burnTime == extras.burnTime, "\(name)")
        }
        try homes.shell("cmp large out/home/large && cmp in.txt out/home/small")
        // A new content of the file leaves them; a changed pair is sent without the content.
        try homes.bench.write("out/home/small", "second")
        extras.tags = []
        try homes.bench.write("out/home/large%meta", String(decoding: extras.json, as: UTF8.self))
        let before = try homes.metric("thicket_blob_received_bytes_total")
        #expect(try homes.tree("import", homes.path("out"), home: "other") == "3 files: 2 sent, 1 as they were\n")
        #expect(try homes.metric("thicket_blob_received_bytes_total") == before)
        try homes.tree("export", homes.path("again"))
        let large = homes.bench.read("again/home/large%meta").flatMap { NodeExtras(json: Array($0.utf8)) }
        #expect(large?.tags.isEmpty == true && large?.thumbnail == extras.thumbnail)
        let small = homes.bench.read("again/home/small%meta").flatMap { NodeExtras(json: Array($0.utf8)) }
        #expect(small?.tags.count == 1 && homes.bench.read("again/home/small") == "second")
    }

    @Test("a folder that no export has written is neither read nor written over, and foreign files are named")
    func foreign() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir plain && echo x > plain/f && mkdir newer")
        for words in [["import", homes.path("plain")], ["export", homes.path("plain")]] {
            let outcome = try homes.bench.run(["tree"] + words)
            #expect(outcome.code == 2, "\(outcome)")
        }
        try homes.bench.write("newer/thicket-tree.json", #"{"format":2}"#)
        #expect(try homes.run("import", homes.path("newer")).errors.contains("newer version"))
        #expect(try homes.run("import", homes.path("nowhere")).code == 3)
        try homes.tree("export", homes.path("out"))
        try homes.shell(
            "cd out/home && echo x > good && echo x > 'bad%zz' && echo x > 'low%2f' && echo '{' > good2%meta")
        try homes.bench.write("out/home/good2", "x")
        let outcome = try homes.run("import", homes.path("out"))
        #expect(outcome.code == 1 && outcome.output == "1 file: 1 sent, 0 as they were\n", "\(outcome)")
        for name in ["bad%zz: no export", "low%2f: no export", "good2%meta is damaged"] {
            #expect(outcome.errors.contains(name), "\(outcome)")
        }
        #expect(try homes.tree("find") == "home/good\n")
    }

    @Test("10,000 random names have names of files of their own, from which they are read back")
    func names() throws {
        var random = SeededRandom(seed: 7)
        let letters = Array("aA%/.~é\n\u{1}🌲 0F2m".unicodeScalars)
        var files = [String: NodeName]()
        for _ in 0..<10_000 {
            let most = Bool.random(using: &random) ? 4 : 90
            let count = Int.random(in: 1...most, using: &random)
            var text = ""
            for _ in 0..<count { text.unicodeScalars.append(letters.randomElement(using: &random) ?? "a") }
            guard let name = try? NodeName(text) else { continue }
            let (file, isLong) = PlainName.file(for: name)
            #expect(file.utf8.count <= PlainName.bytesMax && !file.utf8.contains(0x2F) && file != "." && file != "..")
            #expect(!file.hasSuffix(PlainForm.metaEnding) && !file.hasSuffix(PlainForm.nameEnding))
            if let other = files.updateValue(name, forKey: file) { #expect(other == name, "two names have one file") }
            #expect(isLong ? PlainName.node(for: file) == nil : PlainName.node(for: file) == name)
        }
    }

    @Test("what a file cannot hold is read back as it was, and damaged texts are refused")
    func extras() throws {
        var extras = NodeExtras()
        #expect(NodeExtras(json: extras.json) == extras && extras.isEmpty)
        extras.modified = .some(nil)
        #expect(NodeExtras(json: extras.json) == extras && !extras.isEmpty)
        extras.modified = .some(-5)
        (extras.burnTime, extras.metadata, extras.thumbnail) = (1_800_000_000_000, [0, 255], [1])
        extras.tags = [
            try #require(NodeMetadata.AppTag("colour", [7])), try #require(NodeMetadata.AppTag("empty", [])),
        ]
        #expect(NodeExtras(json: extras.json) == extras)
        for text in [
            "", "[]", #"{"other":1}"#, #"{"modified":"x"}"#, #"{"burns":1.5}"#, #"{"pairs":[["a"]]}"#,
            #"{"metadata":"!"}"#, #"{"pairs":[["","AA"]]}"#,
        ] { #expect(NodeExtras(json: Array(text.utf8)) == nil, "\(text)") }
    }
}
