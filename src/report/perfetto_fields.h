// report/perfetto_fields.h: numbers of the fields that perfetto.cc writes, one list a message.
//
//   track_event = 11, name_iid = 10    a packet's field 11 is a message whose field 10 is a name
//
// They are a contract with Perfetto's viewer and never change there. A wrong one may show as
// nothing: a reader skips fields that it does not know. So test_report_perfetto.py decodes the file
// with Perfetto's own protos.
#pragma once

namespace opguard {

// Field numbers of protos/perfetto/trace/**.proto.
namespace field {
enum Trace { packet = 1 };
enum TracePacket {
  chrome_events = 5,
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  interned_data = 12,
  sequence_flags = 13,
  track_descriptor = 60,
};
enum TrackDescriptor {
  uuid = 1,
  track_name = 2,
  process = 3,
  parent_uuid = 5,
  child_ordering = 11,
  sibling_order_rank = 12,
};
enum ProcessDescriptor { pid = 1, legacy_sort_index = 3, process_name = 6, process_labels = 8 };
enum TrackEvent {
  category_iids = 3,
  debug_annotations = 4,
  type = 9,
  name_iid = 10,
  track_uuid = 11,
  source_location_iid = 34,
  flow_ids = 47,
  terminating_flow_ids = 48,
};
enum InternedData {
  event_categories = 1,
  event_names = 2,
  annotation_names = 3,
  source_locations = 4,
  string_values = 29,
};
enum ChromeEventBundle { metadata = 2 };
enum ChromeMetadata { metadata_name = 1, metadata_text = 2 };
enum Interned {
  iid = 1,
  text = 2
};  // EventName, EventCategory, DebugAnnotationName, InternedString
enum SourceLocation { file_name = 2, function_name = 3, line_number = 4 };
enum DebugAnnotation { annotation_name_iid = 1, uint_value = 3, string_value_iid = 17 };
}  // namespace field

}  // namespace opguard
