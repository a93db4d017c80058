import Testing
import ThicketTreesystem

@Suite("Sources of content")
struct NodeDataTests {
    @Test("a content without arguments has no sections")
    func empty() {
        let sections = NodeSections()
        for section in [sections.metadata, sections.thumbnail, sections.data] {
            if let section { Issue.record("\(section)") }
        }
    }
}
