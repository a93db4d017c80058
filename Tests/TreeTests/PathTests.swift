import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

/// Names that make joined texts ambiguous, that look alike, or that are as long as a name can be.
private let oddNames: [String] = [
    "a/b", "/", "//", "\\", "\\/", "a\\", ".", "..", " ", "a b", "naïve", "cafe\u{301}", "café", "\u{301}", "👩‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "ﬁ", "\n", "\u{1}", "home", "\u{202E}txt", String(repeating: "é", count: 127) + "x",
    String(repeating: "x", count: 255),
]

@Suite("Paths of the tree")
struct PathTests {
    @Test("a path has its trunk and names; parent and child are one name apart")
    func parts() throws {
        let path = try TreePath(.home, ["foo", "bar/baz"])
        #expect(path.trunk == .home && path.depth == 2 && !path.isTrunk)
        #expect(path.name?.text == "bar/baz")
        #expect(try path.parent == TreePath(.home, ["foo"]))
        #expect(try path.parent?.appending("bar/baz") == path)
        #expect(path.parent?.parent == TreePath(.home) && path.parent?.parent?.parent == nil)
        #expect(TreePath(.inbox).isTrunk && TreePath(.inbox).name == nil && TreePath(.inbox) != TreePath(.home))
    }

    @Test("a name with a slash is one name: it is not the path of two")
    func slash() throws {
        #expect(try TreePath(.home, ["a/b"]) != TreePath(.home, ["a", "b"]))
        #expect(try TreePath(.home, ["a/b"]).description == #"home/a\/b"#)
        #expect(try TreePath(.home, ["a", "b"]).description == "home/a/b")
        #expect(try TreePath(.prefs, [#"a\"#, "b"]).description == #"prefs/a\\/b"#)
    }

    @Test("the displayed form of every path is read back as that path, and no two paths have one form")
    func display() throws {
        var forms = Set<String>()
        var random = SeededRandom(seed: 1)
        for round in 0..<2_000 {
            let count = Int.random(in: 0...4, using: &random)
            let names = (0..<count).map { _ in oddNames.randomElement(using: &random) ?? "" }
            let trunk = Trunk.allCases.randomElement(using: &random) ?? .home
            let path = try TreePath(trunk, names)
            #expect(try TreePath(display: path.description) == path, "round \(round)")
            forms.insert(path.description)
        }
        for name in oddNames {
            #expect(try TreePath(display: TreePath(.outbox, [name, name]).description).names.count == 2)
        }
        let paths = Set(try forms.map { try TreePath(display: $0) })
        #expect(paths.count == forms.count)
    }

    @Test(
        "a text that is not the displayed form of a path is refused, with the reason",
        arguments: [
            ("", .noTrunk), ("foo/bar", .noTrunk), ("Home/a", .noTrunk), ("/home/a", .noTrunk), (#"ho\me"#, .badEscape),
            (#"home/a\"#, .badEscape), (#"home/a\b"#, .badEscape), ("home/", .badName(.empty)),
            ("home//a", .badName(.empty)), ("home/a\0", .badName(.nul)),
            ("home/" + String(repeating: "x", count: 256), .badName(.tooLong(256))),
        ] as [(String, TreePath.DisplayFault)])
    func refused(text: String, fault: TreePath.DisplayFault) {
        #expect(throws: fault) { try TreePath(display: text) }
    }

    @Test("a name has 1 to 255 bytes of UTF-8 without NUL, whatever the number of characters")
    func bounds() throws {
        #expect(throws: NodeName.Fault.empty) { try NodeName("") }
        #expect(throws: NodeName.Fault.nul) { try NodeName("a\0b") }
        #expect(throws: NodeName.Fault.tooLong(256)) { try NodeName(String(repeating: "é", count: 128)) }
        #expect(throws: NodeName.Fault.tooLong(256)) { try TreePath(.home, ["a", String(repeating: "x", count: 256)]) }
        #expect(throws: NodeName.Fault.notUTF8) { try NodeName(octets: [0x61, 0xFF]) }
        #expect(throws: NodeName.Fault.notUTF8) { try NodeName(octets: [0xED, 0xA0, 0x80]) }
        #expect(throws: NodeName.Fault.empty) { try NodeName(octets: []) }
        for name in oddNames { #expect(try NodeName(octets: Array(name.utf8)).text.utf8.elementsEqual(name.utf8)) }
    }

    @Test("paths are the same whatever the case of their names, and equal only if the bytes are")
    func same() throws {
        let (lower, upper) = (try TreePath(.home, ["straße", "é"]), try TreePath(.home, ["STRASSE", "E\u{301}"]))
        #expect(lower.isSame(as: upper) && lower != upper)
        #expect(try !lower.isSame(as: TreePath(.prefs, ["straße", "é"])))
        #expect(try !lower.isSame(as: TreePath(.home, ["straße"])))
        #expect(try NodeName("é") != NodeName("e\u{301}") && NodeName("é").isSame(as: NodeName("e\u{301}")))
    }
}

@Suite("Trunks and ids")
struct TrunkTests {
    @Test("a trunk's name is not the id of a node, and no id has the letters of a trunk")
    func reserved() {
        #expect(Trunk.allCases.map(\.rawValue) == ["home", "prefs", "inbox", "outbox"])
        for trunk in Trunk.allCases {
            #expect(NodeID(text: trunk.rawValue) == nil && trunk.rawValue.utf8.count != NodeID.letterCount)
            #expect(NodeParent(text: trunk.rawValue) == .trunk(trunk))
        }
    }

    @Test("an id has one text: 26 letters, in the order of its bytes")
    func text() throws {
        var random = SeededRandom(seed: 2)
        let ids = (0..<500).map { _ in NodeID(UInt128(random.next()) << 64 | UInt128(random.next())) }
        for id in ids + [NodeID(0), NodeID(.max)] {
            #expect(id.text.utf8.count == 26 && NodeID(text: id.text) == id && NodeID(octets: id.octets) == id)
            #expect(NodeParent(text: id.text) == .node(id) && NodeParent.node(id).text == id.text)
        }
        #expect(ids.sorted().map(\.octets) == ids.map(\.octets).sorted { $0.lexicographicallyPrecedes($1) })
        #expect(NodeID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F).text == "aaaqeayeaudaocajbifqydiob4")
    }

    @Test(
        "other texts are not ids",
        arguments: [
            "", "aaaqeayeaudaocajbifqydiob", "aaaqeayeaudaocajbifqydiob4a", "AAAQEAYEAUDAOCAJBIFQYDIOB4",
            "aaaqeayeaudaocajbifqydiob5", "aaaqeayeaudaocajbifqydiob1", "aaaqeayeaudaocajbifqydio==",
            "ááááááááááááá", "home", "Home", " home",
        ])
    func notIDs(text: String) {
        #expect(NodeID(text: text) == nil && (NodeParent(text: text) == nil || text == "home"))
    }

    @Test("a new id is 16 bytes of the generator that is passed in")
    func random() {
        #expect(NodeID.random { [UInt8](repeating: 3, count: $0) }.octets == [UInt8](repeating: 3, count: 16))
        #expect(NodeID.random() != NodeID.random())
    }
}
