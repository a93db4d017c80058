import Testing

/// Bounds of types: lines over all extensions, and stored properties.
@Suite("Sizes of types")
struct TypeSizeTests {
    private static let linesMax = 1_200
    private static let propertiesMax = 20

    /// Types with more lines, each with its reason.
    private static let long = [
        "Server.Hub": "connections, channels and reads of all users: to be divided together with its sessions",
        "Net.EventLoop": "one turn uses all of its state; a division follows the removal of what does not pay",
    ]

    /// Types with more stored properties, each with its reason.
    private static let wide = [
        "Server.ServerLimits": "one property for each setting",
        "Server.ServerConfig": "one property for each setting",
        "Net.NetSettings": "one property for each setting",
        "Server.Metrics": "one property for each metric",
        "Server.Hub": "see above",
        "Net.EventLoop": "see above",
        "Server.ServerLoop": "it joins the hub to the loop and to each of the other threads, one property for each",
        "Server.Channel": "what the init said could be a part of its own: to be divided with the hub",
        "Net.Connection": "its flags follow the loop's lists: to be divided with the loop",
    ]

    private struct Size {
        var lines = 0
        var properties = 0
    }

    /// By folder of the module and name of the type.
    private static let sizes: [String: Size] = {
        var sizes = [String: Size]()
        for path in SwiftText.paths("Sources") {
            let module = path.split(separator: "/")[1]
            for (name, size) in measured(SwiftText.lines(path)) {
                sizes["\(module).\(name)", default: Size()].lines += size.lines
                sizes["\(module).\(name)", default: Size()].properties += size.properties
            }
        }
        return sizes
    }()

    private static let kinds: Set<Substring> = ["struct", "class", "enum", "actor", "extension"]
    private static let modifiers: Set<Substring> = [
        "public", "package", "internal", "private", "fileprivate", "final", "indirect", "open", "lazy", "weak",
        "unowned", "nonisolated", "private(set)", "fileprivate(set)", "internal(set)", "package(set)",
        "unowned(unsafe)", "nonisolated(unsafe)", "@usableFromInline",
    ]

    /// The types of a file in the house's format: a type begins at the margin, its members four columns further.
    private static func measured(_ lines: [String]) -> [String: Size] {
        var sizes = [String: Size]()
        var current: (name: String, isExtension: Bool)?
        for line in lines {
            if let name = current?.name {
                sizes[name, default: Size()].lines += 1
                if current?.isExtension == false { sizes[name, default: Size()].properties += properties(line) }
                if line.hasPrefix("}") { current = nil }
            } else {
                let words = line.split(separator: " ").drop(while: modifiers.contains)
                guard !line.hasPrefix(" "), let kind = words.first, kinds.contains(kind), words.count > 1 else {
                    continue
                }
                let name = String(words[words.startIndex + 1].prefix { $0.isLetter || $0.isNumber || $0 == "." })
                sizes[name, default: Size()].lines += 1
                if !line.hasSuffix("}") { current = (name, kind == "extension") }
            }
        }
        return sizes
    }

    /// Number of stored properties of an instance that a line declares.
    private static func properties(_ line: String) -> Int {
        guard line.hasPrefix("    "), !line.hasPrefix("     ") else { return 0 }
        let words = line.split(separator: " ").drop(while: modifiers.contains)
        guard let kind = words.first, kind == "let" || kind == "var", words.count > 1 else { return 0 }
        let rest = words.dropFirst().joined(separator: " ")
        let isComputed = kind == "var" && rest.contains("{") && !rest.prefix { $0 != "{" }.contains("=")
        guard !isComputed || rest.contains("didSet") else { return 0 }
        return rest.hasPrefix("(") ? rest.prefix { $0 != ")" }.count { $0 == "," } + 1 : 1
    }

    @Test("no type has more than 1,200 lines over all its extensions")
    func lines() {
        #expect(Self.sizes.count > 500)
        for (name, size) in Self.sizes where size.lines > Self.linesMax && Self.long[name] == nil {
            Issue.record("\(name) has \(size.lines) lines: divide it")
        }
        for name in Self.long.keys {
            #expect((Self.sizes[name]?.lines ?? 0) > Self.linesMax, "\(name) needs no exception any more")
        }
    }

    @Test("no type has more than 20 stored properties")
    func stored() {
        for (name, size) in Self.sizes where size.properties > Self.propertiesMax && Self.wide[name] == nil {
            Issue.record("\(name) has \(size.properties) stored properties: group those that belong together")
        }
        for name in Self.wide.keys {
            #expect(
                (Self.sizes[name]?.properties ?? 0) > Self.propertiesMax, "\(name) needs no exception any more")
        }
    }

    @Test("members, computed properties and other types are told apart")
    func measures() {
        let sizes = Self.measured(
            """
            public final class A {
                let a = 1
                private(set) var b: Int
                var c: Int { 1 }
                var d: Int = 1 { didSet { e() } }
                let (f, g): (Int, Int)
                static let h = 1
                func e() {
                    let i = 1
                }
            }
            extension A {
                var j: Int { 1 }
            }
            struct B {}
            """.split(separator: "\n").map(String.init))
        #expect(sizes["A"]?.properties == 5 && sizes["A"]?.lines == 14)
        #expect(sizes["B"]?.properties == 0 && sizes["B"]?.lines == 1)
    }
}
