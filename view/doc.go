// Package view shows tasks, datasets, predictions, training curves and a model
// at work as one web page, from a local server or as one file.
//
// The page is plain HTML, CSS and ES modules (assets/), embedded, without
// anything from elsewhere; all it shows it asks for as JSON, with GET alone:
//
//	/api/items                                  what there is
//	/api/tasks/ITEM                             the tasks of a corpus
//	/api/tasks/ITEM/N                           one task
//	/api/dataset/ITEM/SPLIT                     the tasks of a split
//	/api/dataset/ITEM/SPLIT/GROUP/COPY          examples of one copy of a task
//	/api/answers/ITEM                           scores and tasks of a predictions file
//	/api/answers/ITEM/N                         ranked answers of one task
//	/api/answers/ITEM/curve                     scores with fewer copies and segments
//	/api/run/ITEM                               what is known of a run
//	/api/run/ITEM/curves?metric=NAME            values by step, thinned out
//	/api/model/ITEM                             the model of a run
//	/api/model/ITEM/SPLIT/ROW                   its answers segment by segment
//	/api/model/ITEM/SPLIT/ROW/attention         what attends to what
//
// Lists come in pages (?page=0). A report is the same page with the answers to
// a choice of these addresses inside.
//
// Nothing is written, and nothing large is held: datasets are mapped and read a
// puzzle at a time, votes keep the best answers of each test input, curves are
// thinned while they are read. A grid is a text, rows of digits with a slash
// between them; a canvas of S tokens is S characters, a digit for a colour, a
// dot for padding, a bar for an end marker.
package view
